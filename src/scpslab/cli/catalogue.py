"""`scpslab list`: the experiments, and the parts from which new ones can be made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer
import yaml
from rich.table import Table

from scpslab import scenario
from scpslab.cli.options import choice
from scpslab.cli.tables import table_console
from scpslab.plan.serial_links import SerialLink
from scpslab.plan.topology import Parameters
from scpslab.scenario import planning, topologies
from scpslab.scenario.campaign import campaign_names, load_campaign
from scpslab.scenario.load import FOLDER
from scpslab.scenario.stacks import STACKS


def list_(
    what: Annotated[str, choice("WHAT", (*TABLES, "all"), f"One of {', '.join(TABLES)}, all.")] = "scenarios",
    cells: Annotated[
        bool,
        typer.Option("--cells", help="Also plan the experiments: how many cells they have, and their least time."),
    ] = False,
) -> None:
    """List scenarios, campaigns, topologies or presets.

    The column "at least" of --cells is the virtual time of all cells together when no packet is lost. Engine virtual
    passes some hundred virtual seconds per second.

    Examples: scpslab list · scpslab list topologies · scpslab list --cells
    """
    console = table_console()
    for index, (name, table) in enumerate(TABLES.items()):
        if what in (name, "all"):
            if index and what == "all":
                console.print()
            console.print(table(cells))


def _table(*columns: str) -> Table:
    return Table(*columns, box=None, pad_edge=False)


def _scenarios(has_cells: bool) -> Table:
    return _experiments("scenario", scenario.names(), ("cells", "at least") if has_cells else (), _size_of)


def _campaigns(has_cells: bool) -> Table:
    return _experiments("campaign", campaign_names(), ("scenarios", "cells") if has_cells else (), _members_of)


def _experiments(
    kind: str, names: Iterable[str], sizes: tuple[str, ...], size_of: Callable[[str], tuple[str, str]]
) -> Table:
    """Files of the project, each above its variants, with columns of sizes if there are any."""
    table = _table(kind, *sizes, "title")
    for name in names:
        for each, title in _titles(FOLDER / f"{name}.yaml", name):
            shown, style = (name, None) if each == name else (each.replace(name, "  ", 1), "dim")
            table.add_row(shown, *(size_of(each) if sizes else ()), title, style=style)
    return table


def _titles(path: Path, name: str) -> list[tuple[str, str]]:
    """The name of a file of the project and its title, then those of its variants, which need none.

    Only these keys are read: to plan all experiments takes as long as to run some.
    """
    file = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 (both are safe)
    variants = [(f"{name}:{one}", (of or {}).get("title", "")) for one, of in (file.get("variants") or {}).items()]
    return [(name, file["title"]), *variants]


def _members_of(campaign: str) -> tuple[str, str]:
    """The numbers of a campaign's scenarios and of their cells."""
    members = load_campaign(campaign).members
    return str(len(members)), str(sum(len(scenario.cells(member.load())) for member in members))


def _size_of(name: str) -> tuple[str, str]:
    """The number of a scenario's cells, and the least virtual time of all of them together."""
    loaded = scenario.load(name)
    cells = scenario.cells(loaded)
    seconds = (
        sum(planning.least_virtual_s(planning.plan(cell)) for cell in cells if cell.repeat == 1) * loaded.model.repeats
    )
    return str(len(cells)), f"{seconds:.0f} s" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def _topologies(_: bool) -> Table:
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


def _presets(_: bool) -> Table:
    table = _table("stack", "preset", "title")
    for name, stack in STACKS.items():
        for preset, title in stack.presets.items():
            table.add_row(name, preset, title)
    return table


TABLES = {"scenarios": _scenarios, "campaigns": _campaigns, "topologies": _topologies, "presets": _presets}
