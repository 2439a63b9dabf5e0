"""`scpslab clab`: networks of containerlab, read as topologies and written from them."""

from pathlib import Path
from typing import Annotated

import typer

from scpslab.core.errors import UsageError
from scpslab.core.units import UnitError
from scpslab.scenario import clab as files
from scpslab.scenario.topologies import OnDisk, TopologyError


def clab() -> None:
    """Read networks of containerlab as topologies, and write them.

    Both commands write to standard output. Nodes of kind linux become hosts or routers, with the addresses and routes
    that their exec commands give them; bridges become switches. What is left out is said.

    Examples: scpslab clab import lab.clab.yml > lab.py · scpslab clab export fy97 > fy97.clab.yml
    """


def import_(file: Annotated[Path, typer.Argument(metavar="FILE")]) -> None:
    """Write a file of containerlab as a topology file, and say what is left out.

    Examples: scpslab clab import lab.clab.yml > lab.py

    Options:
        file: A file of containerlab.
    """
    text, left_out = files.topology_of(file)
    typer.echo(text, nl=False)
    for one in left_out:
        typer.echo(f"left out: {one}", err=True)


def export(topology: Annotated[str, typer.Argument(metavar="TOPOLOGY")]) -> None:
    """Write a topology as a file of containerlab: addresses, routes, rates and delays as commands of its nodes.

    Examples: scpslab clab export fy97 · scpslab clab export ./relay.py > relay.clab.yml

    Options:
        topology: Its name, or its file.
    """
    try:
        network = OnDisk().find(topology, Path()).described({})
    except (TopologyError, UnitError) as error:
        raise UsageError(f"TOPOLOGY: {error}") from error
    typer.echo(files.written(network.plan()), nl=False)


SUBCOMMANDS = (import_, export)
