"""`scpslab shell`: a prompt on a topology, in engine `live`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from scpslab import units
from scpslab.engine.live import LiveEngine
from scpslab.errors import ScenarioError, UsageError
from scpslab.scenario.places import one_of
from scpslab.topology import catalogue
from scpslab.topology.layout import layout

MEMORY_MIB = 512


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("shell")(shell)


def shell(
    topology: Annotated[str, typer.Argument(help="A topology: scpslab list --what topologies.")] = "fy97",
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="PARAMETER=VALUE", help="A parameter: data_rate='9600 bit/s'; may be repeated.")] = None,
    bash: Annotated[bool, typer.Option("--bash", help="The guest's own shell instead, to type `mn --custom …` in.")] = False,
) -> None:
    """Starts a topology on the wall clock and gives Mininet's prompt: every node is a container to type commands into.

    Examples: scpslab shell fy97 · then: ws1 ping -c 3 10.2.0.2 · or: ws2 iperf3 -s -D, ws1 iperf3 -c 10.2.0.2
    """
    plan = shell_plan(topology, set_ or [], "bash" if bash else "mininet")
    engine = LiveEngine()
    console = Console(stderr=True)
    engine.prepare(lambda text: console.print(text, highlight=False), [plan])
    with tempfile.TemporaryDirectory(prefix="scpslab-shell-") as folder:
        code = engine.interact(plan, Path(folder))
    if code:
        raise typer.Exit(4)


def shell_plan(topology: str, parameters: list[str], kind: str) -> dict[str, object]:
    """The plan of a topology that a person will use.

    Raises:
        ScenarioError: unknown topology or parameter.
        UsageError: an option that is not PARAMETER=VALUE.
    """
    try:
        module = catalogue.module(topology)
    except KeyError as error:
        raise ScenarioError(f'topology: found "{topology}"; {one_of(topology, catalogue.names())}') from error
    given: dict[str, str] = {}
    for text in parameters:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f'--set: found "{text}"; expected PARAMETER=VALUE, such as data_rate="9600 bit/s". Correct the option.')
        given[name] = value
    try:
        network = module.describe(module.PARAMETERS.read(given))
    except units.UnitError as error:
        raise ScenarioError(f"--set: {error}. Correct the option.") from error
    return {
        "format": 1,
        "cell": {"id": "shell", "scenario": "shell", "axes": {}, "repeat": 1, "kernel_seed": "", "shell": kind},
        "limits": {"virtual_s": 10**9, "wall_s": 10**9, "memory_mib": MEMORY_MIB},
        "containers": "process",
        **layout(network),
        "workloads": [],
        "probes": [],
    }
