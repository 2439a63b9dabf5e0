"""`scpslab list`: the experiments, and the parts from which new ones can be made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from rich.table import Table

from scpslab import scenario
from scpslab.cli.options import choice
from scpslab.cli.tables import table_console
from scpslab.plan.serial_links import SerialLink
from scpslab.plan.topology import Parameters, catalogue
from scpslab.scenario import planning
from scpslab.scenario.campaign import campaign_names, load_campaign
from scpslab.scenario.stacks import STACKS
from scpslab.scenario.topologies import defaults


def list_(
    what: Annotated[str, choice("WHAT", (*TABLES, "all"), f"One of {', '.join(TABLES)}, all.")] = "scenarios",
) -> None:
    """List scenarios, campaigns, topologies or presets.

    The column "at least" is the virtual time of all cells together when no packet is lost. Engine virtual passes some
    hundred virtual seconds per second.

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
    table = _table("scenario", "cells", "at least", "title")
    for name in scenario.names():
        loaded = scenario.load(name)
        table.add_row(name, *_size_of(loaded), loaded.title)
        for variant in loaded.variants:
            table.add_row(f"  :{variant}", *_size_of(scenario.load(f"{name}:{variant}")), "", style="dim")
    return table


def _campaigns() -> Table:
    table = _table("campaign", "scenarios", "cells", "title")
    for name in campaign_names():
        whole = load_campaign(name)
        for campaign in (whole, *(load_campaign(f"{name}:{variant}") for variant in whole.variants)):
            cells = sum(len(scenario.cells(member.load())) for member in campaign.members)
            shown = campaign.name if campaign is whole else f"  {campaign.name.removeprefix(whole.name)}"
            table.add_row(
                shown,
                str(len(campaign.members)),
                str(cells),
                campaign.title,
                style=None if campaign is whole else "dim",
            )
    return table


def _size_of(loaded: scenario.Scenario) -> tuple[str, str]:
    """The number of cells, and the least virtual time of all of them together."""
    cells = scenario.cells(loaded)
    seconds = (
        sum(planning.least_virtual_s(planning.plan(cell)) for cell in cells if cell.repeat == 1) * loaded.model.repeats
    )
    return str(len(cells)), f"{seconds:.0f} s" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def _topologies() -> Table:
    table = _table("topology", "parameter or link", "default", "meaning")
    for name in catalogue.names():
        shown = name
        for row in _rows_of(catalogue.module(name).PARAMETERS, name):
            table.add_row(shown, *row)
            shown = ""
    return table


def _rows_of(parameters: Parameters, topology: str) -> Iterator[tuple[str, str, str]]:
    """Parameters, links with a delay or a serial line (one of several that are alike)."""
    for name, spec in parameters.declared.items():
        yield name, "calculated" if spec.default is None else spec.text(spec.default), spec.doc
    network = catalogue.module(topology).describe(parameters.read({}))
    alike: set[tuple[str, ...]] = set()
    for link in network.all_links:
        texts = tuple(map(defaults, link.directions))
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
