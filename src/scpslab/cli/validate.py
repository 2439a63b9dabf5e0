"""`scpslab validate`: checks a scenario, and prints it with all its defaults."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence, Sized
from typing import Annotated

import typer

from scpslab import scenario
from scpslab.analysis import checks
from scpslab.cli.options import Settings, Trust, completed
from scpslab.cli.remaining import LONG_S, forecast
from scpslab.core.errors import ScenarioError
from scpslab.core.harmless import harmless
from scpslab.core.problems import Problem
from scpslab.plan import Plan
from scpslab.scenario import planning
from scpslab.scenario.campaign import campaign_names, is_campaign, load_campaign
from scpslab.scenario.cells import uncollected
from scpslab.scenario.paths import changes_conditions
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
    resolved: Annotated[
        bool, typer.Option("--resolved", help="Print the scenario as YAML with every default value written out.")
    ] = False,
    set_: Settings = None,
    trust: Trust = False,
) -> None:
    """Check a scenario or campaign, and run nothing.

    The command checks the form, the names, every point of the sweep, every variant and every plan. It reports all
    errors at once: file and line, key, what was found, what was expected, what to do. Below the number of cells it
    prints the path of each workload's packets, there and back.

    Examples: scpslab validate fy97/fig04 · scpslab validate fy97/fig04:kernel-test --resolved · scpslab validate
    fy97/fig04:kernel-test --set repeats=2
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
    typer.echo(harmless(f"{loaded.name}: {loaded.title}{changed}: {_counted(planned)}"))
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
