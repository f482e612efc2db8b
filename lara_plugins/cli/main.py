"""The entry point of the ``lara`` command."""

from __future__ import annotations

import io
import logging
import sys

from lara_plugins.errors import LaraError, MissingExtra

STORAGE_CLIENTS = {"aiohttp", "azure", "botocore", "gcsfs", "google"}
"""The packages under fsspec whose errors, such as missing credentials, are no OSError."""


def main() -> None:
    """Run the command; an error is one line on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # passages hold what not every terminal can show
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # an unreadable page stands in the report
    try:
        from lara_plugins.cli.app import app  # noqa: PLC0415

        app()
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "rich"}:
            raise
        _fail(MissingExtra(error.name, "lara-plugins[cli]"))
    except (LaraError, OSError) as error:
        _fail(error)
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in STORAGE_CLIENTS:
            raise
        _fail(error)


def _fail(error: Exception) -> None:
    sys.stderr.write(f"error: {' '.join(str(error).split())}\n")
    sys.exit(2)
