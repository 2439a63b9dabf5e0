"""`scpslab plan`: the ids of all cells, the plan of a cell, the paths of packets, or what a run costs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from scpslab import plan as plans
from scpslab import scenario
from scpslab.cli.options import Settings, Trust
from scpslab.cli.remaining import in_words
from scpslab.cli.validate import Scenario
from scpslab.core.choices import one_of
from scpslab.core.errors import ResultError, UsageError
from scpslab.core.harmless import harmless
from scpslab.running.measured import ALIKE, EXACT, OTHERS, PLAN, Measured
from scpslab.runs import RunFolder
from scpslab.runs.run import RUNS
from scpslab.scenario import planning
from scpslab.scenario.campaign import Member, is_campaign, load_campaign
from scpslab.scenario.planning import Cost
from scpslab.scenario.planning.estimate import PACKET_S, START_S
from scpslab.scenario.topologies import OnDisk

CORES = (1, 4, 16, 64, 256)
# Of a run with many cells, the size of these is measured.
MOST_MEASURED = 200


def plan(
    name: Scenario,
    cell: Annotated[str | None, typer.Option(metavar="ID", help="Print the plan of this cell as JSON.")] = None,
    paths: Annotated[
        bool, typer.Option("--paths", help="Print the path of every workload's packets in each direction, hop by hop.")
    ] = False,
    cost: Annotated[
        bool,
        typer.Option(
            "--cost",
            help="Print what a scenario or campaign needs: CPU hours, memory, storage, and the time on N cores.",
        ),
    ] = False,
    draw: Annotated[bool, typer.Option("--draw", help="Print a drawing of the network, as SVG.")] = False,
    set_: Settings = None,
    trust: Trust = False,
) -> None:
    """Show what a run would do: its cells, a plan, paths, or the cost.

    Without an option, the command prints the ids of all cells. The lab carries out the plan of a cell: every address,
    rate, delay, seed and kernel setting, without defaults (scpslab docs plan-format).

    --paths shows links, rates, delays and bit errors from host to host and back; cells with the same paths stand
    together (scpslab docs paths).

    Examples: scpslab plan fy97/fig04:kernel-test · scpslab plan links/one-way --paths · scpslab plan links/one-way
    --draw > network.svg · scpslab plan campaigns/papers:quick --cost · scpslab plan fy97/fig04:kernel-test --cell
    stack=fy97-reno,errors=clustered,ber=0,r1
    """
    if cost:
        typer.echo(cost_text(name, set_ or [], trust=trust), nl=False)
        return
    cells = {item.id: item for item in scenario.cells(scenario.load(name, set_ or [], OnDisk(is_trusted=trust)))}
    if cell is not None and cell not in cells:
        raise UsageError(f'--cell: found "{cell}"; {one_of(cell, cells)}')
    chosen = cells if cell is None else {cell: cells[cell]}
    if paths:
        typer.echo(harmless(planning.paths_text({name: planning.plan(one) for name, one in chosen.items()})), nl=False)
    elif draw:
        typer.echo(
            planning.drawing(f"The network of {name}", [planning.plan(one) for one in chosen.values()]), nl=False
        )
    elif cell is None:
        typer.echo("\n".join(cells))
    else:
        typer.echo(plans.text(planning.plan(cells[cell])), nl=False)


def cost_text(name: str, settings: list[str], *, trust: bool = False, runs: Path = RUNS) -> str:
    """The cost of a scenario or campaign; `runs`: where finished runs are.

    Raises:
        ScenarioError: it is not valid.
    """
    topologies = OnDisk(is_trusted=trust)
    members = load_campaign(name).members if is_campaign(name) else [Member(name, ())]
    loaded = [member.load(settings, topologies) for member in members]
    times, measured = Measured.of(runs), _measured(runs)
    costs = [
        (one.name, Cost.of(planning.plans(scenario.cells(one)).values(), partial(times.wall_s, one.name)))
        for one in loaded
    ]
    total = sum((cost for _, cost in costs[1:]), costs[0][1])
    lines = [
        (
            f"{total.cells} cells in {len(costs)} scenario{'s' if len(costs) > 1 else ''}, "
            f"{in_words(total.virtual_s)} of virtual time at least"
        )
    ]
    lines.append(f"CPU time: {in_words(total.busy_s)}, the longest cell {in_words(total.longest_s)}")
    lines.append(
        f"memory: at most {total.memory_mib(1)} MiB with one core, {total.memory_mib(2) - total.memory_mib(1)} MiB "
        "more for each further core"
    )
    known = [(cost.cells, measured[one]) for one, cost in costs if one in measured]
    if known:
        size, cells = sum(number * each for number, each in known), sum(number for number, _ in known)
        lines.append(
            f"storage: {size / 10**6:.3g} MB for {cells} of the {total.cells} cells; "
            f"of the others, {runs} has no run of their scenario"
        )
    else:
        lines.append(f"storage: not known; {runs} has no run of these scenarios")
    lines += [f"on {cores} core{'s' if cores > 1 else ''}: {in_words(total.wall_s(cores))}" for cores in CORES]
    lines.append(f"The times: {_sources(times)}. Storage is measured.")
    return "\n".join(lines) + "\n"


def _sources(times: Measured) -> str:
    """What the times rest on, in words."""
    words = {
        EXACT: "as they took in earlier runs",
        ALIKE: "by their plans and earlier runs of their scenario",
        OTHERS: "by their plans and earlier runs of other scenarios",
        PLAN: (
            f"by their plans alone, {START_S:g} s and {PACKET_S * 1e6:g} µs for each packet of data, when nothing "
            "is lost"
        ),
    }
    return "; ".join(
        f"{number} cell{'s' if number > 1 else ''} {words[source]}" for source, number in times.counts.items() if number
    )


def _measured(runs: Path) -> dict[str, float]:
    """The mean bytes of a cell, for each scenario that has a run in a folder."""
    sizes: dict[str, float] = {}
    for folder in RunFolder.all_in(runs):
        cells = folder.planned_cells()[:MOST_MEASURED]
        try:
            name = folder.manifest().scenario
        except ResultError:
            continue
        if cells and name is not None:
            sizes[name] = sum(
                path.stat().st_size for cell in cells for path in cell.path.rglob("*") if path.is_file()
            ) / len(cells)
    return sizes
