"""`scpslab migrate`: puts today's words into a file."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated

import typer

from scpslab.cli.options import Trust
from scpslab.cli.terminal import harmless
from scpslab.core.errors import ScenarioError
from scpslab.core.scratch import replace_text
from scpslab.scenario.migrated import migrated
from scpslab.scenario.topologies import OnDisk


def migrate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Scenario or campaign files of your own.")],
    diff: Annotated[bool, typer.Option("--diff", help="Print what would change, and change nothing.")] = False,
    trust: Trust = False,
) -> None:
    """Rewrite scenario files in today's words.

    Comments and layout stay. Files in the words of 0.3.0 work until version 1; "scpslab validate" names those words.
    Cells keep their names and random numbers.

    Examples: scpslab migrate mine.yaml · scpslab migrate --diff *.yaml
    """
    wrong = []
    for file in files:
        try:
            text, new = migrated(file, OnDisk(is_trusted=trust))
        except ScenarioError as error:
            wrong += str(error).splitlines()
            continue
        if diff:
            lines = difflib.unified_diff(text.splitlines(), new.splitlines(), str(file), str(file), n=0, lineterm="")
            typer.echo(harmless("\n".join(lines)), nl=text != new)
        elif text != new:
            # What a link names is rewritten, and stays as private as it was.
            place = file.resolve()
            mode = place.stat().st_mode & 0o777
            replace_text(place, new, private=True)
            place.chmod(mode)
            typer.echo(harmless(f"{file}: rewritten"))
    if wrong:
        raise ScenarioError("\n".join(wrong))
