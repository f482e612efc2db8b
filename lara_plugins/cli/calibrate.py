"""``lara calibrate``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from lara_plugins.cli.labels import Row, read_rows
from lara_plugins.cli.render import console
from lara_plugins.errors import InvalidArgument
from lara_plugins.gate import Calibration, Example, NotCalibrated, calibrate, check_recall, load_scorer
from lara_plugins.passages import Passage
from lara_plugins.retrieval import EmbeddedIndex, HybridIndex, retrieval_plan, terms


def run(folder: Path, out: Path, questions: Path | None, recall: float, name: str) -> bool:
    """Calibrate theta for an index and a scorer, and write it to a file.

    Args:
        folder: the index.
        out: the file.
        questions: a file as `read_rows` reads it, or None where they are to be made from the passages.
        recall: the share of the evidence to keep.
        name: what ``load_scorer`` takes.

    Returns:
        Whether there is a theta that means something; where there is none, nothing is written.
    """
    if not out.absolute().parent.is_dir() or out.is_dir():  # before any work is lost
        raise InvalidArgument("--out", str(out), "give a file in a folder that exists")
    check_recall(recall)
    rows = [] if questions is None else read_rows(questions)
    scorer = load_scorer(name)
    scorer.load()
    with EmbeddedIndex(folder, create=False) as index:
        passages = all_passages(index)
        examples = examples_of(rows, index, passages)
    labels = sum(bool(example.relevant) for example in examples)
    if not labels and any(row.answers or row.passages for row in rows):
        remedy = "no passage that is found for its questions holds an answer: is it about this index?"
        raise InvalidArgument("--questions", str(questions), remedy)
    if 0 < labels < len(rows):
        left_out = f"Left out {len(rows) - labels} of {len(rows)} questions"
        reason = "they have no label, or no passage that is found for them holds an answer"
        console(sys.stderr).print(f"{left_out}: {reason}.", soft_wrap=True)
    asked = "questions made from them" if questions is None else questions.name
    source = f"{asked}; {len(passages)} passages of {folder.resolve().name}"
    found = calibrate(scorer, passages, examples, recall=recall, source=source)
    console().print(told(found), soft_wrap=True)
    if isinstance(found, NotCalibrated):
        return False
    found.save(out)
    if name == "embedded":
        use = f'lara ask "..." --index {folder} --calibration {out}'
    else:
        use = f"ThresholdGate(scorer={name!r}, theta=Calibration.load({str(out)!r}))"
    console().print(f"Written to {out}. Use it: {use}", soft_wrap=True)
    return True


def all_passages(index: EmbeddedIndex) -> list[Passage]:
    """Every passage of an index, by its id."""
    found = sorted(index.passages(), key=lambda passage: passage.id)
    if len(found) < 2:
        remedy = "its passages are too few to calibrate on: ingest the corpus"
        raise InvalidArgument("--index", len(found), remedy)
    return found


def examples_of(rows: Sequence[Row], index: HybridIndex, passages: Sequence[Passage]) -> list[Example]:
    """The questions with their evidence.

    An answer is looked for in the passages that retrieval finds for its question, and the best
    of those that hold it is the evidence; a question whose answer is in none is left out.
    """
    known = {passage.id: passage for passage in passages}
    plan = retrieval_plan(len(passages), alpha_ceiling=index.alpha_ceiling)
    examples = []
    for row in rows:
        if row.passages:
            examples.append(
                Example(row.question, tuple(_named(name, known, row) for name in dict.fromkeys(row.passages)))
            )
            continue
        limit = plan.pool_size if row.answers else 1
        found = [match.passage for match in index.search(row.question, limit=limit, alpha=plan.alpha)]
        if not row.answers:
            examples.append(Example(row.question, nearest=found[0]))
        elif holding := tuple(passage for passage in found if holds(passage, row.answers)):
            examples.append(Example(row.question, holding, all_needed=False))
    return examples


def holds(passage: Passage, answers: Sequence[str]) -> bool:
    """Whether one of the answers stands in a passage as whole words, case and punctuation aside."""
    text = f" {' '.join(terms(passage.content))} "
    return any(f" {words} " in text for words in (" ".join(terms(answer)) for answer in answers) if words)


def told(found: Calibration | NotCalibrated) -> str:
    """The outcome in a few sentences."""
    if isinstance(found, NotCalibrated):
        return f"{found.verdict.capitalize()} ({found.tier}, n = {found.n}): {found.reason}."
    grounds = {
        "labelled": "of a new question's evidence, {recall:.0%} reaches theta in expectation",
        "pseudo": "of the evidence of questions made from the passages, {recall:.0%} reaches theta; "
        "people's questions may keep less: label some to know",
        "unlabelled": "theta leaves out what is unrelated; how much evidence it keeps is not known",
    }[found.tier].format(recall=found.recall or 0.0)
    return (
        f"theta {found.theta:.3g}, {found.tier}, n = {found.n}: {grounds}. "
        f"Here {found.kept:.1%} of {'the nearest passages' if found.recall is None else 'the evidence'} and "
        f"{found.unrelated_kept:.1%} of {found.unrelated} unrelated pairs reach it."
    )


def _named(name: str, known: dict[str, Passage], row: Row) -> Passage:
    """The passage of that id, or of that own ``_id`` where one record alone has it."""
    if name in known:
        return known[name]
    own = [passage for passage in known.values() if passage.id.partition("#")[2] == name]
    if len(own) != 1:
        held = f"{len(own)} passages have it" if own else "no passage has it"
        raise InvalidArgument("--questions", name, f"line {row.line}: {held}; lara ask --json shows the ids")
    return own[0]
