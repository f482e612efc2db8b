"""The commands and their options; what they do is imported when they run, so that help is fast."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lara_plugins.version import __version__

app = typer.Typer(
    help="Latency-aware retrieval augmentation: ask your own files, within a time that you set.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

IndexFolder = Annotated[
    Path, typer.Option("--index", help="The folder of the index.", metavar="DIR", readable=False)
]
Afford = Annotated[float, typer.Option(help="Seconds that an answer may take.")]
Theta = Annotated[float | None, typer.Option(help="Least relevance of a passage, 0 to 1; 0.3 by default.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lara {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Declares what stands before the command."""


@app.command()
def ingest(
    path: Annotated[
        list[Path],
        typer.Argument(
            help="Files and folders (.txt .md .csv .jsonl .pdf).", metavar="PATH...", readable=False
        ),
    ],
    index: IndexFolder,
) -> None:
    """Read files and folders into an index; what has not changed is left alone."""
    from lara_plugins.cli.ingest import run  # noqa: PLC0415

    run(path, index)


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    index: IndexFolder,
    afford: Afford = 4.0,
    theta: Theta = None,
    calibration: Annotated[
        Path | None,
        typer.Option(help="A file of lara calibrate, in place of --theta.", metavar="FILE", readable=False),
    ] = None,
    on_empty: Annotated[
        str | None,
        typer.Option(
            help="Where no passage is relevant enough: abstain (the default) or keep_best.", metavar="POLICY"
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Answer a question from an index, with its sources and how the answer came about."""
    from lara_plugins.cli.ask import gate_of, run  # noqa: PLC0415

    run(question, index, afford, gate_of(theta, calibration, on_empty), as_json=json)


@app.command()
def calibrate(
    index: IndexFolder,
    out: Annotated[Path, typer.Option(help="Where the calibration goes.", metavar="FILE", readable=False)],
    labelled: Annotated[
        Path | None,
        typer.Option(
            help='Questions, one a line: {"question": ..., "answers": [...]}, or "passages" for "answers".',
            metavar="FILE",
            readable=False,
        ),
    ] = None,
    recall: Annotated[float, typer.Option(help="Share of the evidence to keep.")] = 0.95,
    scorer: Annotated[
        str, typer.Option(help="A scorer's name; lara ask uses the embedded one.", metavar="NAME")
    ] = "embedded",
) -> None:
    """Choose theta for an index: from labelled questions, from questions alone, or from its passages."""
    from lara_plugins.cli.calibrate import run  # noqa: PLC0415

    if not run(index, out, labelled, recall, scorer):
        raise typer.Exit(1)


@app.command()
def demo(
    question: Annotated[str | None, typer.Argument(help="A question of your own about SQLite.")] = None,
    afford: Afford = 4.0,
) -> None:
    """Ask SQLite's documentation, which comes with this package: no account, no download."""
    from lara_plugins.cli.demo import run  # noqa: PLC0415

    run(question, afford)
