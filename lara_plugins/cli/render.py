"""How results look on a terminal, narrow or wide, with colours or without, and in a pipe."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from lara_plugins.passages import Passage
from lara_plugins.trace import Phase, Trace

if TYPE_CHECKING:
    from lara_plugins.ingestion import IngestReport
    from lara_plugins.pipeline import Outcome

UNBROKEN = 1_000_000
"""Columns of what is no terminal: whoever searches or copies lines there needs them whole."""

RULE_WIDTH = 80
SKIPPED_SHOWN = 20
CITED_SHOWN = 5
FILES_SHOWN = 5


def console(stream: TextIO | None = None) -> Console:
    """A console on ``stream`` (stdout if not given); rich drops colours where nobody sees them."""
    out = Console(file=stream, highlight=False, soft_wrap=False, emoji=False, markup=False)
    if not out.is_terminal:
        out.width = UNBROKEN
    return out


def print_rule(out: Console, title: str) -> None:
    """A line across with a title at its left."""
    out.print(Rule(Text(title, style="dim"), style="dim", align="left"), width=min(out.width, RULE_WIDTH))


def print_answer(out: Console, outcome: Outcome, folder: Path) -> None:
    """The answer, then the sources that it cites with their words, then the other ones by name.

    Args:
        out: where to.
        outcome: the answered question.
        folder: sources below it are shown relative to it.
    """
    found = outcome.answer.evidence.answer_found
    out.print(Text(outcome.text, style="bold" if found else "yellow"))
    for caveat in outcome.answer.evidence.caveats:
        out.print(Text(f"Note: {caveat}", style="dim"))
    citations = outcome.answer.citations
    out.print()
    for number, spans in list(citations.items())[:CITED_SHOWN]:
        lines = [_place(number, outcome.sources[number - 1], folder)]
        lines += [Text(f'    "{" ".join(span.quote.split())}"') for span in spans]
        for line in lines:  # clipped at the terminal's edge; --json has them whole
            out.print(line, no_wrap=True, overflow="ellipsis")
    _print_names(out, "Also cited", outcome.sources, list(citations)[CITED_SHOWN:], folder)
    others = [number for number in range(1, len(outcome.sources) + 1) if number not in citations]
    _print_names(out, "Also sent" if found else "Nearest", outcome.sources, others, folder)


def print_trace(out: Console, outcome: Outcome) -> None:
    """What each phase decided and what it cost, and the whole against the budget."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("phase", style="cyan", no_wrap=True)
    table.add_column("decision")
    table.add_column("seconds", justify="right", no_wrap=True)
    for phase in outcome.trace.phases:
        table.add_row(phase.name, Text(_decision(phase)), f"{phase.seconds:.3f} s")
    table.add_row("total", Text(_allowed(outcome.trace)), f"{outcome.seconds:.3f} s", style="bold")
    out.print(table)
    for note in outcome.trace.notes:
        out.print(Text(f"Note: {note}", style="dim"))


def print_facts(out: Console, facts: Iterable[tuple[str, str]]) -> None:
    """Names and values, a line each."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("name", style="cyan", no_wrap=True)
    table.add_column("value")
    for name, value in facts:
        table.add_row(name, Text(value))
    out.print(table)


def print_report(out: Console, report: IngestReport, folder: Path) -> None:
    """What became of the files, and what was skipped and why."""
    out.print(
        f"{report.added} added, {report.updated} updated, {report.unchanged} unchanged, "
        f"{report.removed} removed; {report.passages} passages written in {report.seconds:.1f} s"
    )
    for path, repeated, pages in report.cleaned:
        told = f"  {shown_source(path, folder)} without the line {repeated!r} of {pages} pages"
        out.print(Text(told, style="dim"), soft_wrap=True)
    if not report.skipped:
        return
    out.print(Text(f"Skipped {len(report.skipped)}:", style="yellow"))
    shown = report.skipped[:SKIPPED_SHOWN] if out.is_terminal else report.skipped
    for path, reason in shown:
        line = Text.assemble("  ", (shown_source(path, folder), "bold"), f" {reason}")
        out.print(line, soft_wrap=True)  # a path to copy is not broken over two lines
    if len(report.skipped) > len(shown):
        out.print(f"  and {len(report.skipped) - len(shown)} more")


def shown_source(source: str, folder: Path) -> str:
    """The source as a person reads it: a path relative to ``folder`` if it is below."""
    return os.path.relpath(source, folder) if Path(source).is_relative_to(folder) else source


def _decision(phase: Phase) -> str:
    """The numbers of a phase at a glance; a phase that is not known here gives its reason."""
    facts = phase.facts
    match phase.name:
        case "retrieval":
            return f"{facts['found']} candidates of {facts['corpus']} passages, alpha {facts['alpha']}"
        case "gate":
            below = f"{facts['below_theta']} below theta {facts['theta']:.3g}"
            return f"{facts['kept']} kept, {below}, {facts['unscored']} unscored"
        case "budget":
            cut = f", {facts['reduced']} cut to fit" if facts["reduced"] else ""
            return f"{facts['sent']} sent{cut}"
        case "route":
            return f"{facts['regime']}, by rule {facts['rule']}"
        case "answer":
            calls = facts["calls"]
            return f"{calls} {'call' if calls == 1 else 'calls'}, {facts['outcome']}"
        case _:
            return phase.reason


def _allowed(trace: Trace) -> str:
    """The budget that the total is held against."""
    budget = trace.last("budget")
    return f"of {budget.facts['afford']} s allowed" if budget else ""


def _place(number: int, passage: Passage, folder: Path) -> Text:
    """Where a cited passage stands."""
    place = Text.assemble((f"[{number}] ", "bold cyan"), (shown_source(passage.source, folder), "bold"))
    if "page" in passage.metadata:
        place.append(f", page {passage.metadata['page']}")
    if passage.heading:
        place.append(f"  {passage.heading.split(' > ')[-1]}", style="dim")
    return place


def _print_names(
    out: Console, title: str, sources: Sequence[Passage], numbers: Sequence[int], folder: Path
) -> None:
    """The files of some sources with the sources' numbers; nothing where there are none."""
    by_file: dict[str, list[str]] = {}
    for number in numbers:
        by_file.setdefault(shown_source(sources[number - 1].source, folder), []).append(f"[{number}]")
    names = [f"{file} {' '.join(cited)}" for file, cited in by_file.items()]
    more = f", and {len(names) - FILES_SHOWN} more" if len(names) > FILES_SHOWN else ""
    if names:
        out.print(Text(f"{title}: {', '.join(names[:FILES_SHOWN])}{more}", style="dim"))
