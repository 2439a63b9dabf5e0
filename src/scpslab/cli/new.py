"""`scpslab new`: copies a scenario with comments, for a person to edit."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from scpslab import scenario
from scpslab.cli.options import completed
from scpslab.cli.terminal import harmless, printable
from scpslab.core.choices import one_of
from scpslab.core.errors import UsageError
from scpslab.core.names import is_name
from scpslab.scenario.load import FOLDER

SUFFIXES = (".yaml", ".yml")
# The first line of the project's files names a schema beside them.
FOR_EDITORS = "# yaml-language-server:"


def new(  # typer calls it by name
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", callback=printable, help="The file to write, for example mine.yaml; it must not exist yet."
        ),
    ],
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="SCENARIO",
            help="The scenario to copy: start/transfer, start/congestion and start/bufferbloat explain each key; every "
            "other one of scpslab list can be copied, too.",
            autocompletion=completed(scenario.names),
        ),
    ] = "start/transfer",
) -> None:
    """Write a new scenario with comments, ready to run and to edit.

    The file is a copy of a scenario of the project. The command never overwrites a file.

    Examples: scpslab new mine.yaml · scpslab new mine.yaml --from start/bufferbloat
    """
    _check_name(file)
    if source not in scenario.names():
        raise UsageError(f'--from: found "{source}"; {one_of(source, scenario.names())}')
    lines = (FOLDER / f"{source}.yaml").read_text(encoding="utf-8").splitlines(keepends=True)
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.writelines(line for line in lines if not line.startswith(FOR_EDITORS))
    except FileExistsError as error:
        raise _exists(file) from error
    typer.echo("Edit the file if you like, then:", err=True)
    for command, does in (
        (f"scpslab validate {shlex.quote(str(file))}", "check it"),
        (f"scpslab run {shlex.quote(str(file))}", "run it"),
        ("scpslab results last", "show means with intervals"),
        ("scpslab plot last", "draw figures"),
    ):
        typer.echo(harmless(f"  {command:<40}  {does}"), err=True)
    typer.echo(harmless(str(file)))


def _check_name(file: Path) -> None:
    """Refuses a file that exists, has no folder, or has a name that is no scenario's."""
    if file.suffix not in SUFFIXES or not is_name(file.stem):
        raise UsageError(
            f'{file}: found the name "{file.name}"; expected letters, digits, "-", "_" or "." and .yaml at the end. '
            "Choose another name."
        )
    if file.exists() or file.is_symlink():
        raise _exists(file)
    if not file.parent.is_dir():
        raise UsageError(f"{file}: found no folder {file.parent}; expected one. Make it, or choose another.")


def _exists(file: Path) -> UsageError:
    return UsageError(
        f"{file}: found a file; expected none, because nothing is overwritten. Choose another name, or remove the file."
    )
