"""`scpslab new`: copies a scenario with comments, for a person to edit."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Annotated

import typer

from scpslab import scenario
from scpslab.cli.options import completed
from scpslab.cli.terminal import printable
from scpslab.core.choices import one_of
from scpslab.core.errors import UsageError
from scpslab.core.harmless import harmless
from scpslab.core.names import is_name
from scpslab.scenario.load import FOLDER

SUFFIXES = (".yaml", ".yml")
# Scenarios of the protocols of others.
PEERS = "peers/"
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
    peer: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Copy the transfer by another protocol: quic, tquic, http3, cfdp, ltp or bundles (docs/programs.md).",
            autocompletion=completed(lambda: [name.partition("/")[2] for name in _peers()]),
        ),
    ] = None,
) -> None:
    """Write a new scenario with comments, ready to run and to edit.

    The file is a copy of a scenario of the project; what belongs to it, such as a folder of programs, is copied beside
    it. The command never overwrites a file.

    Examples: scpslab new mine.yaml · scpslab new mine.yaml --from start/bufferbloat · scpslab new mine.yaml --peer quic
    """
    _check_name(file)
    if peer is not None:
        source = f"{PEERS}{peer}"
        if source not in _peers():
            named = [name.removeprefix(PEERS) for name in _peers()]
            raise UsageError(f'--peer: found "{peer}"; {one_of(peer, named)}')
    if source not in scenario.names():
        raise UsageError(f'--from: found "{source}"; {one_of(source, scenario.names())}')
    lines = (FOLDER / f"{source}.yaml").read_text(encoding="utf-8").splitlines(keepends=True)
    programs = scenario.load(source).model.programs
    if programs is not None and (file.parent / programs).exists():
        raise _exists(file.parent / programs)
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.writelines(line for line in lines if not line.startswith(FOR_EDITORS))
    except FileExistsError as error:
        raise _exists(file) from error
    if programs is not None:
        shutil.copytree((FOLDER / source).parent / programs, file.parent / programs)
        typer.echo(harmless(f"Its programs are in {file.parent / programs}."), err=True)
    typer.echo("Edit the file if you like, then:", err=True)
    for command, does in (
        (f"scpslab validate {shlex.quote(str(file))}", "check it"),
        (f"scpslab run {shlex.quote(str(file))}", "run it"),
        ("scpslab results last", "show means with intervals"),
        ("scpslab plot last", "draw figures"),
    ):
        typer.echo(harmless(f"  {command:<40}  {does}"), err=True)
    typer.echo(harmless(str(file)))


def _peers() -> list[str]:
    return [name for name in scenario.names() if name.startswith(PEERS)]


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
