"""``lara route``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from lara_plugins.cli.render import console, print_facts
from lara_plugins.question import QuestionShape, Route, parse_question, route


def run(question: str, language: str | None, *, as_json: bool) -> None:
    """Say how a question would be answered, before anything is retrieved."""
    shape = parse_question(question, language)
    chosen = route(shape)
    if as_json:
        json.dump(as_plain_values(question, shape, chosen), sys.stdout)
        sys.stdout.write("\n")
        return
    print_facts(console(), facts(question, shape, chosen))


def as_plain_values(question: str, shape: QuestionShape, chosen: Route) -> dict[str, object]:
    """Shape and route as JSON holds them; ``span`` counts in ``question``."""
    return {
        "question": question,
        "answer_shape": shape.answer_shape,
        "decomposition": shape.decomposition,
        "language": shape.language,
        "parsed_by": shape.rule,
        "span": list(shape.span),
        "words": question[slice(*shape.span)],
        "regime": chosen.regime,
        "rule": chosen.rule,
        "reason": chosen.reason,
    }


def facts(question: str, shape: QuestionShape, chosen: Route) -> Iterator[tuple[str, str]]:
    """The same for a person, a line each."""
    several = "" if shape.decomposition == "single" else f", {shape.decomposition.replace('_', ' ')}"
    yield "shape", f"{shape.answer_shape}{several} ({shape.language})"
    yield "parsed by", f'{shape.rule}: "{question[slice(*shape.span)]}"'
    yield "regime", f"{chosen.regime}, by rule {chosen.rule}"
    yield "why", chosen.reason
