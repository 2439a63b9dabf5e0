"""The program as somebody types it."""

import os
import subprocess
from pathlib import Path

from scpslab.core.project import ROOT

LIMIT_S = 600


def ended(*words: object, folder: Path | None = None, typed: str | None = None) -> subprocess.CompletedProcess[str]:
    """A command of scpslab that has ended, called in a folder, with lines on its standard input."""
    return subprocess.run(
        [ROOT / "scpslab", *map(str, words)],
        cwd=folder,
        input=typed,
        env=os.environ | {"COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def scpslab(*words: object, folder: Path | None = None, typed: str | None = None, code: int = 0) -> str:
    """What a command prints that ends with this exit code; of a command that fails, its messages."""
    command = ended(*words, folder=folder, typed=typed)
    assert command.returncode == code, command.stdout + command.stderr
    return command.stdout if code == 0 else command.stderr
