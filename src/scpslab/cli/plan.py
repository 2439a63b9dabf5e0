"""`scpslab validate`: checks a scenario, and prints it with all its defaults; and `scpslab plan`: the ids of all cells,
the plan of a cell, the paths of packets, or what a run costs.
"""

import os
from collections.abc import Iterator, Sequence, Sized
from pathlib import Path
from typing import Annotated

import typer

from scpslab import plan as plans
from scpslab import scenario
from scpslab.analysis import checks
from scpslab.cli.options import Settings, Trust, completed
from scpslab.core.choices import one_of
from scpslab.core.errors import ResultError, ScenarioError, UsageError, harmless
from scpslab.core.problems import Problem
from scpslab.plan import Plan
from scpslab.runs import RunFolder
from scpslab.runs.run import RUNS
from scpslab.scenario import planning
from scpslab.scenario.campaign import Member, campaign_names, is_campaign, load_campaign
from scpslab.scenario.cells import uncollected
from scpslab.scenario.paths import changes_conditions
from scpslab.scenario.planning import Cost
from scpslab.scenario.planning.estimate import LONG_S, PACKET_S, START_S, forecast, in_words
from scpslab.scenario.topologies import OnDisk

Scenario = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO",
        help="A scenario or campaign by name or path; :VARIANT chooses a variant of it, e.g. fy97/fig04:kernel-demo.",
        autocompletion=completed(lambda: (*scenario.names(), *campaign_names())),
    ),
]


def validate(
    name: Scenario,
    resolved: Annotated[bool, typer.Option("--resolved")] = False,
    set_: Settings = None,
    trust: Trust = False,
) -> None:
    """Check a scenario or campaign, and run nothing.

    The command checks the form, the names, every point of the sweep, every variant and every plan. It reports all
    errors at once: file and line, key, what was found, what was expected, what to do. Below the number of cells it
    prints the path of each workload's packets, there and back.

    Examples: scpslab validate fy97/fig04 · scpslab validate fy97/fig04:kernel-test --resolved · scpslab validate
    fy97/fig04:kernel-test --set repeats=2

    Options:
        resolved: Print the scenario as YAML with every default value written out.
    """
    if is_campaign(name):
        _campaign(name, set_ or [], is_trusted=trust)
        return
    loaded = scenario.load(name, set_ or [], OnDisk(is_trusted=trust))
    planned = checked_plans(loaded)
    if resolved:
        typer.echo(scenario.resolved_yaml(loaded), nl=False)
        return
    changed = ", changed" if any(map(changes_conditions, set_ or [])) else ""
    typer.echo(harmless(f"{loaded.name}: {loaded.model.title}{changed}: {_counted(planned)}"))
    for line in planning.short_paths(planned):
        typer.echo(harmless(f"  {line}"))
    expected = [planning.expected(plan) for plan in planned.values()]
    if sum(cell.wall_s for cell in expected) >= LONG_S:
        typer.echo(f"  {forecast(expected, len(os.sched_getaffinity(0)))} in engine virtual")
    if loaded.name == loaded.base_name:
        wrong: list[str] = []
        for variant in loaded.variants:
            try:
                smaller = scenario.load(f"{name}:{variant}", set_ or [], OnDisk(is_trusted=trust))
                typer.echo(f"{smaller.name}: {_counted(checked_plans(smaller))}")
            except ScenarioError as error:
                wrong += [f"{loaded.base_name}:{variant}: {line}" for line in str(error).splitlines()]
        if wrong:
            raise ScenarioError("\n".join(dict.fromkeys(wrong)))


def _campaign(name: str, overrides: list[str], *, is_trusted: bool) -> None:
    """Prints the number of cells of each scenario of a campaign; reports the errors of all scenarios at once."""
    loaded = load_campaign(name)
    wrong: list[str] = []
    for member in loaded.members:
        try:
            typer.echo(
                f"{member.name}: {_counted(checked_plans(member.load(overrides, OnDisk(is_trusted=is_trusted))))}"
            )
        except ScenarioError as error:
            wrong += str(error).splitlines()
    for pattern in loaded.left_out:
        typer.echo(f"{pattern}: skipped, because no scenario has this name")
    if wrong:
        raise ScenarioError("\n".join(dict.fromkeys(wrong)))


def checked_plans(loaded: scenario.Scenario) -> dict[str, Plan]:
    """The plan of every cell of a scenario.

    Prints a warning of what can hardly be meant: a sweep that makes no difference, keys without use.
    """
    with uncollected():
        cells = scenario.cells(loaded)
        planned = planning.plans(cells)
        if wrong := [*checks.misfits(loaded.model, planned.values()), *_asked(cells)]:
            raise loaded.places.error(wrong)
        for warning in (*planning.warnings(planned, loaded.places.of(("sweep",))), *planning.doubts(cells, planned)):
            typer.echo(harmless(warning), err=True)
        return planned


def _asked(cells: Sequence[scenario.Cell]) -> Iterator[Problem]:
    """What programs of this machine find wrong in a probe, once each."""
    probes = {(index, repr(probe)): probe for cell in cells for index, probe in enumerate(cell.model.probes)}
    for (index, _), probe in probes.items():
        yield from (problem.within("probes", index) for problem in probe.asked())


def _counted(cells: Sized) -> str:
    return f"{len(cells)} {'cell' if len(cells) == 1 else 'cells'}, all planned"


CORES = (1, 4, 16, 64, 256)
# Of a run with many cells, the size of these is measured.
MOST_MEASURED = 200


def plan(
    name: Scenario,
    cell: Annotated[str | None, typer.Option(metavar="ID")] = None,
    paths: Annotated[bool, typer.Option("--paths")] = False,
    cost: Annotated[bool, typer.Option("--cost")] = False,
    draw: Annotated[bool, typer.Option("--draw")] = False,
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

    Options:
        cell: Print the plan of this cell as JSON.
        paths: Print the path of every workload's packets in each direction, hop by hop.
        cost: Print what a scenario or campaign needs: CPU hours, memory, storage, and the time on N cores.
        draw: Print a drawing of the network, as SVG.
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
    measured = _measured(runs)
    costs = [(one.name, Cost.of(planning.plans(scenario.cells(one)).values())) for one in loaded]
    total = sum((cost for _, cost in costs[1:]), costs[0][1])
    first, each = total.memory_mib(1), total.memory_mib(2) - total.memory_mib(1)
    storage = f"not known; {runs} has no run of these scenarios"
    if known := [(cost.cells, measured[one]) for one, cost in costs if one in measured]:
        size, cells = sum(number * of_one for number, of_one in known), sum(number for number, _ in known)
        storage = f"{size / 10**6:.3g} MB for {cells} of the {total.cells} cells"
        storage += f"; of the others, {runs} has no run of their scenario"
    said = f"{total.cells} cells in {len(costs)} scenario{'s' if len(costs) > 1 else ''}"
    by = f"by the plans alone, {START_S:g} s and {PACKET_S * 1e6:g} µs for each packet of data, when nothing is lost"
    lines = [
        f"{said}, {in_words(total.virtual_s)} of virtual time at least",
        f"CPU time: {in_words(total.busy_s)}, the longest cell {in_words(total.longest_s)}",
        f"memory: at most {first} MiB with one core, {each} MiB more for each further core",
        f"storage: {storage}",
        *(f"on {cores} core{'s' if cores > 1 else ''}: {in_words(total.wall_s(cores))}" for cores in CORES),
        f"The times: {by}. Storage is measured.",
    ]
    return "\n".join(lines) + "\n"


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
            files = (path for cell in cells for path in cell.path.rglob("*") if path.is_file())
            sizes[name] = sum(path.stat().st_size for path in files) / len(cells)
    return sizes
