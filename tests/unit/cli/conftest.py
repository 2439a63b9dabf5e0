"""The program as it is called."""

from __future__ import annotations

import sys

import pytest

from scpslab.cli import app


@pytest.fixture
def scpslab(monkeypatch, capsys):
    """Runs a command line; gives exit code, standard output and standard error."""

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["scpslab", *words])
        code = 0
        try:
            app.main()
        except SystemExit as stopped:
            code = stopped.code or 0
        said = capsys.readouterr()
        return code, said.out, said.err

    return run
