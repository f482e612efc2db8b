from __future__ import annotations

import sys
from pathlib import Path

import pytest
from command_line import Lara, Ran

from lara_plugins.cli.main import main


@pytest.fixture
def lara(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Lara:
    """Runs the command in this process."""

    def run(*arguments: str | Path) -> Ran:
        monkeypatch.setattr(sys, "argv", ["lara", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return Ran(int(ended.value.code or 0), printed.out, printed.err)

    return run
