"""`scpslab plan`: prints the plan of a cell, or the ids of all cells."""

from __future__ import annotations

from typing import Annotated

import typer

from scpslab import plan as plans
from scpslab import scenario
from scpslab.cli.cost import cost_text
from scpslab.cli.terminal import harmless
from scpslab.cli.validate import SCENARIO_HELP, SET_HELP, TRUST_HELP, todays_name
from scpslab.core.choices import one_of
from scpslab.core.errors import UsageError
from scpslab.scenario import planning
from scpslab.scenario.topologies import OnDisk


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("plan")(plan)


def plan(
    name: Annotated[str, typer.Argument(metavar="SCENARIO", help=SCENARIO_HELP)],
    cell: Annotated[str | None, typer.Option(metavar="ID", help="Print the plan of this cell as JSON.")] = None,
    paths: Annotated[bool, typer.Option("--paths", help="Print the path of every workload's packets in each direction, hop by hop.")] = False,
    cost: Annotated[bool, typer.Option("--cost", help="Print what a scenario or campaign needs: CPU hours, memory, storage, and the time on N cores.")] = False,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help=SET_HELP)] = None,
    trust: Annotated[bool, typer.Option("--trust", help=TRUST_HELP)] = False,
) -> None:
    """Print the ids of all cells, the plan of one cell, or the paths of packets.

    The lab carries out the plan. It states every address, rate, delay, seed and kernel setting; it has no defaults (docs/plan-format.md).

    --paths shows links, rates, delays and bit errors from host to host and back; cells with the same paths stand together (docs/paths.md).

    Examples: scpslab plan fy97/fig04:kernel-test · scpslab plan links/one-way --paths ·
    scpslab plan fy97/fig04:kernel-test --cell stack=fy97-reno,errors=clustered,ber=0,r1
    """
    if cost:
        typer.echo(cost_text(todays_name(name), set_ or [], trust=trust), nl=False)
        return
    cells = {item.id: item for item in scenario.cells(scenario.load(todays_name(name), set_ or [], OnDisk(is_trusted=trust)))}
    if cell is not None and cell not in cells:
        raise UsageError(f'--cell: found "{cell}"; {one_of(cell, cells)}')
    chosen = cells if cell is None else {cell: cells[cell]}
    if paths:
        typer.echo(harmless(planning.paths_text({name: planning.plan(one) for name, one in chosen.items()})), nl=False)
    elif cell is None:
        typer.echo("\n".join(cells))
    else:
        typer.echo(plans.text(planning.plan(cells[cell])), nl=False)
