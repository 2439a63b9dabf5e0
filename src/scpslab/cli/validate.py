"""`scpslab validate`: is this scenario right, and what does it say?"""

from __future__ import annotations

from typing import Annotated

import typer

from scpslab import planning, scenario
from scpslab.cli.terminal import harmless
from scpslab.errors import ScenarioError
from scpslab.scenario.campaign import is_campaign, load_campaign

SCENARIO_HELP = "A scenario by name or path, with :VARIANT for a smaller one, e.g. fy97/fig04:test."
SET_HELP = "Override one value of the scenario, e.g. workloads.transfer.size='100 kB'; may be repeated."


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("validate")(validate)


def validate(
    name: Annotated[str, typer.Argument(metavar="SCENARIO", help=SCENARIO_HELP)],
    resolved: Annotated[bool, typer.Option("--resolved", help="Print the scenario as YAML with every default written out.")] = False,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help=SET_HELP)] = None,
) -> None:
    """Checks a scenario, or all scenarios of a campaign, without running it.

    Its form, its names, every point of its sweep, every variant, every plan. Everything that is wrong is reported at once: file and line, key,
    what was found, what was expected, what to do.

    Examples: scpslab validate fy97/fig04 · scpslab validate my.yaml --resolved · scpslab validate my.yaml --set repeats=2
    """
    name = todays_name(name)
    if is_campaign(name):
        _campaign(name, set_ or [])
        return
    loaded = scenario.load(name, set_ or [])
    cells = checked_cells(loaded)
    if resolved:
        typer.echo(scenario.resolved_yaml(loaded), nl=False)
        return
    typer.echo(harmless(f"{loaded.name}: {loaded.title}: {_counted(cells)}"))
    if loaded.name == loaded.base_name:
        wrong: list[str] = []
        for variant in loaded.variants:
            try:
                smaller = scenario.load(f"{name}:{variant}", set_ or [])
                typer.echo(f"{smaller.name}: {_counted(checked_cells(smaller))}")
            except ScenarioError as error:
                wrong += str(error).splitlines()
        if wrong:
            raise ScenarioError("\n".join(dict.fromkeys(wrong)))


def todays_name(name: str) -> str:
    """The name that a scenario has today; who typed an old one is told."""
    today = scenario.current_name(name)
    if today != name:
        typer.echo(f"{name} is called {today} now.", err=True)
    return today


def _campaign(name: str, overrides: list[str]) -> None:
    """Says how many cells each scenario of a campaign has; all that is wrong with any of them is reported at once."""
    loaded = load_campaign(name)
    wrong: list[str] = []
    for member in loaded.members:
        try:
            typer.echo(f"{member.name}: {_counted(checked_cells(member.load(overrides)))}")
        except ScenarioError as error:
            wrong += str(error).splitlines()
    for pattern in loaded.left_out:
        typer.echo(f"{pattern}: no scenario is called so; left out")
    if wrong:
        raise ScenarioError("\n".join(dict.fromkeys(wrong)))


def checked_cells(loaded: scenario.Scenario) -> list[scenario.Cell]:
    """The cells of a scenario, each of them planned."""
    cells = scenario.cells(loaded)
    for cell in cells:
        planning.plan(cell)
    return cells


def _counted(cells: list[scenario.Cell]) -> str:
    return f"{len(cells)} {'cell' if len(cells) == 1 else 'cells'}, all planned"
