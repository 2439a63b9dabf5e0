"""`scpslab list`: the experiments, and the parts from which new ones can be made; `scpslab new`: copies a scenario with
comments, for a person to edit.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from scpslab import scenario
from scpslab.cli.options import choice, completed
from scpslab.cli.tables import table_console
from scpslab.cli.terminal import printable
from scpslab.core.choices import one_of
from scpslab.core.errors import UsageError, harmless
from scpslab.core.names import is_name
from scpslab.documents.yaml_lines import own
from scpslab.plan.serial_links import SerialLink
from scpslab.plan.topology import Parameters
from scpslab.scenario import topologies
from scpslab.scenario.campaign import campaign_names
from scpslab.scenario.load import FOLDER
from scpslab.scenario.stacks import STACKS


def list_(
    what: Annotated[str, choice("WHAT", (*TABLES, "all"), f"One of {', '.join(TABLES)}, all.")] = "scenarios",
) -> None:
    """List scenarios, campaigns, topologies or presets.

    Examples: scpslab list · scpslab list topologies
    """
    console = table_console()
    for index, (name, table) in enumerate(TABLES.items()):
        if what in (name, "all"):
            if index and what == "all":
                console.print()
            console.print(table())


def _table(*columns: str) -> Table:
    return Table(*columns, box=None, pad_edge=False)


def _scenarios() -> Table:
    return _experiments("scenario", scenario.names())


def _campaigns() -> Table:
    return _experiments("campaign", campaign_names())


def _experiments(kind: str, names: Iterable[str]) -> Table:
    """Files of the project, each above its variants."""
    table = _table(kind, "title")
    for name in names:
        for each, title in _titles(FOLDER / f"{name}.yaml", name):
            shown, style = (name, None) if each == name else (each.replace(name, "  ", 1), "dim")
            table.add_row(shown, title, style=style)
    return table


def _titles(path: Path, name: str) -> list[tuple[str, str]]:
    """The name of a file of the project and its title, then those of its variants, which need none.

    Only these keys are read: to plan all experiments takes as long as to run some.
    """
    file = own(path)
    variants = [(f"{name}:{one}", (of or {}).get("title", "")) for one, of in (file.get("variants") or {}).items()]
    return [(name, file["title"]), *variants]


def _topologies() -> Table:
    table = _table("topology", "parameter or link", "default", "meaning")
    for name in topologies.names():
        shown = name
        for row in _rows_of(topologies.module(name).PARAMETERS, name):
            table.add_row(shown, *row)
            shown = ""
    return table


def _rows_of(parameters: Parameters, topology: str) -> Iterator[tuple[str, str, str]]:
    """Parameters, links with a delay or a serial line (one of several that are alike)."""
    for name, spec in parameters.declared.items():
        yield name, "calculated" if spec.default is None else spec.text(spec.default), spec.doc
    network = topologies.module(topology).describe(parameters.read({}))
    alike: set[tuple[str, ...]] = set()
    for link in network.all_links:
        texts = tuple(map(topologies.defaults, link.directions))
        if (isinstance(link, SerialLink) or link.via) and texts not in alike:
            for direction, text in zip(link.directions, texts, strict=True):
                yield f"links.{link.name}.{direction.name}", "", text
            alike.add(texts)


def _presets() -> Table:
    table = _table("stack", "preset", "title")
    for name, stack in STACKS.items():
        for preset, title in stack.presets.items():
            table.add_row(name, preset, title)
    return table


TABLES = {"scenarios": _scenarios, "campaigns": _campaigns, "topologies": _topologies, "presets": _presets}


SUFFIXES = (".yaml", ".yml")
# The first line of the project's files names a schema beside them.
FOR_EDITORS = "# yaml-language-server:"


def _peers() -> list[str]:
    """The scenarios of other protocols, without their folder."""
    return [name.removeprefix("peers/") for name in scenario.names() if name.startswith("peers/")]


def new(  # typer calls it by name
    file: Annotated[Path, typer.Argument(metavar="FILE", callback=printable)],
    source: Annotated[
        str, typer.Option("--from", metavar="SCENARIO", autocompletion=completed(scenario.names))
    ] = "start/transfer",
    peer: Annotated[str | None, typer.Option(metavar="NAME", autocompletion=completed(_peers))] = None,
) -> None:
    """Write a new scenario with comments, ready to run and to edit.

    The file is a copy of a scenario of the project; what belongs to it, such as a folder of programs, is copied beside
    it. The command never overwrites a file.

    Examples: scpslab new mine.yaml · scpslab new mine.yaml --from start/bufferbloat · scpslab new mine.yaml --peer quic

    Options:
        file: The file to write, for example mine.yaml; it must not exist yet.
        source: The scenario to copy: start/transfer, start/congestion, start/bufferbloat and start/demo explain each
            key; every other one of scpslab list can be copied, too.
        peer: Copy the transfer by another protocol: quic, tquic, http3, cfdp, ltp or bundles (docs/programs.md).
    """
    _check_name(file)
    if peer is not None:
        if peer not in _peers():
            raise UsageError(f'--peer: found "{peer}"; {one_of(peer, _peers())}')
        source = f"peers/{peer}"
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


def _check_name(file: Path) -> None:
    """Refuses a file that exists, has no folder, or has a name that is no scenario's."""
    if file.suffix not in SUFFIXES or not is_name(file.stem):
        expected = 'expected letters, digits, "-", "_" or "." and .yaml at the end. Choose another name.'
        raise UsageError(f'{file}: found the name "{file.name}"; {expected}')
    if file.exists() or file.is_symlink():
        raise _exists(file)
    if not file.parent.is_dir():
        raise UsageError(f"{file}: found no folder {file.parent}; expected one. Make it, or choose another.")


def _exists(file: Path) -> UsageError:
    return UsageError(
        f"{file}: found a file; expected none, because nothing is overwritten. Choose another name, or remove the file."
    )
