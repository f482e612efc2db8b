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

_INDEX = typer.Option("--index", help="The folder of the index.", metavar="DIR", readable=False)
IndexFolder = Annotated[Path, _INDEX]
MaybeFolder = Annotated[Path | None, _INDEX]
PineconeName = Annotated[
    str | None,
    typer.Option(
        "--pinecone",
        help="In place of a folder, an index at Pinecone; your key is read from PINECONE_API_KEY.",
        metavar="NAME",
    ),
]
Namespace = Annotated[str, typer.Option(help="A namespace of the Pinecone index.", metavar="NAME")]
Bm25File = Annotated[
    Path | None,
    typer.Option(
        "--bm25",
        help="BM25's statistics of the Pinecone index; NAME.bm25.json, with its namespace NAME.NAMESPACE"
        ".bm25.json, in the current folder by default.",
        metavar="FILE",
        readable=False,
    ),
]
Paths = Annotated[
    list[str],
    typer.Argument(
        help="Files, folders and URLs such as s3://bucket/folder (.txt .md .csv .jsonl .pdf).",
        metavar="PATH...",
    ),
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
    path: Paths,
    index: MaybeFolder = None,
    pinecone: PineconeName = None,
    namespace: Namespace = "",
    bm25: Bm25File = None,
    cloud: Annotated[
        str | None,
        typer.Option(
            help="The cloud that a new Pinecone index is created in: aws (the default), gcp or azure.",
            metavar="NAME",
        ),
    ] = None,
    region: Annotated[
        str | None,
        typer.Option(
            help="The cloud's region; by default us-east-1 of aws, us-central1 of gcp, eastus2 of azure.",
            metavar="NAME",
        ),
    ] = None,
) -> None:
    """Read files and folders into an index; what has not changed is left alone.

    A Pinecone index that does not exist is created, serverless.
    """
    from lara_plugins.cli.ingest import run  # noqa: PLC0415
    from lara_plugins.cli.where import which  # noqa: PLC0415

    run(path, which(index, pinecone, namespace, bm25, cloud, region))


@app.command()
def export(
    path: Paths,
    parquet: Annotated[
        str, typer.Option(help="The folder or URL that the files go to; it must be empty.", metavar="DIR")
    ],
    namespace: Annotated[
        str, typer.Option(help="The namespace that Pinecone's import creates.", metavar="NAME")
    ] = "__default__",
) -> None:
    """Write files and folders as Parquet files from which Pinecone imports them, with both encodings."""
    from lara_plugins.cli.export import run  # noqa: PLC0415

    run(path, parquet, namespace)


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    index: MaybeFolder = None,
    pinecone: PineconeName = None,
    namespace: Namespace = "",
    bm25: Bm25File = None,
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
    from lara_plugins.cli.where import which  # noqa: PLC0415

    where = which(index, pinecone, namespace, bm25)
    run(question, where, afford, gate_of(theta, calibration, on_empty), as_json=json)


@app.command()
def route(
    question: Annotated[str, typer.Argument(help="What you would ask.")],
    language: Annotated[
        str | None, typer.Option(help="Its language, such as en; detected by default.", metavar="CODE")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Say how a question would be answered: its shape, the rule and words that tell, and the regime."""
    from lara_plugins.cli.route import run  # noqa: PLC0415

    run(question, language, as_json=json)


@app.command()
def calibrate(
    index: IndexFolder,
    out: Annotated[Path, typer.Option(help="Where the calibration goes.", metavar="FILE", readable=False)],
    questions: Annotated[
        Path | None,
        typer.Option(
            help='Questions, one a line: {"question": ...}, best with "answers": [...] '
            'or, by id, "passages": [...]; without a file, they are made from the passages.',
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

    if not run(index, out, questions, recall, scorer):
        raise typer.Exit(1)


@app.command()
def demo(
    question: Annotated[str | None, typer.Argument(help="A question of your own about SQLite.")] = None,
    afford: Afford = 4.0,
) -> None:
    """Ask SQLite's documentation, which comes with this package: no account, no download."""
    from lara_plugins.cli.demo import run  # noqa: PLC0415

    run(question, afford)


latency = typer.Typer(help="How long an LLM takes: what was learned, and measuring it.", no_args_is_help=True)
app.add_typer(latency, name="latency")


@latency.command()
def show(
    file: Annotated[
        Path, typer.Argument(help="A file of lara latency probe.", metavar="FILE", readable=False)
    ],
) -> None:
    """Say what a latency file knows and predicts."""
    from lara_plugins.cli.latency import show as run  # noqa: PLC0415

    run(file)


@latency.command()
def probe(
    url: Annotated[str, typer.Option(help="Base URL of OpenAI's protocol, such as https://host/v1.")],
    model: Annotated[str, typer.Option(help="The model's name.")],
    out: Annotated[Path, typer.Option(help="Where the file goes.", metavar="FILE", readable=False)],
    calls: Annotated[int, typer.Option(help="Calls to make; 30 are enough to predict from.")] = 30,
    key_variable: Annotated[
        str, typer.Option(help="The environment variable that holds the key.", metavar="NAME")
    ] = "OPENAI_API_KEY",
    timeout: Annotated[float, typer.Option(help="Seconds that a call may take.")] = 60.0,
) -> None:
    """Measure an LLM with a few calls before it serves."""
    from lara_plugins.cli.latency import probe as run  # noqa: PLC0415

    run(url, model, out, calls, key_variable, timeout)
