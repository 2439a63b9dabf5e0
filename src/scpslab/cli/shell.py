"""`scpslab shell`: a prompt on a topology, on the wall clock."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from scpslab import scenario
from scpslab.cli.options import Trust, choice, completed, engine_choice
from scpslab.cli.session import Session, new_folder
from scpslab.cli.tables import Notes, plain_console
from scpslab.core import units
from scpslab.core.errors import INTERRUPTED_EXIT, LabError, ScenarioError, UsageError
from scpslab.core.scratch import scratch
from scpslab.documents.yaml_lines import written
from scpslab.engine import INTERACTIVE as ENGINES
from scpslab.engine.base import Interrupted
from scpslab.plan import Plan
from scpslab.plan.cell import Limits, Prompt
from scpslab.plan.network import Containers
from scpslab.plan.nodes import Host
from scpslab.scenario import planning
from scpslab.scenario.paths import mapping_at
from scpslab.scenario.topologies import OnDisk, TopologyError, is_path, names

ENGINE = engine_choice(ENGINES, "Engine to start it in")
CONTAINERS = choice("--containers", get_args(Containers), "Kind of nodes: process or docker.")
LIMITS = Limits(virtual_s=10**9, wall_s=10**9)


def shell(
    topology: Annotated[
        str,
        typer.Argument(
            metavar="[TOPOLOGY]",
            help="The topology to start; scpslab list topologies lists them. "
            "A path that begins with ./ or / is a file of your own.",
            autocompletion=completed(names),
        ),
    ] = "fy97",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Set a property of a link, e.g. links.hop.forward.rate='9600 bit/s', or a parameter of the topology, "
            "e.g. mtu='576 B'; may be repeated.",
        ),
    ] = None,
    stack: Annotated[
        list[str] | None,
        typer.Option(
            "--stack",
            metavar="HOST=STACK[:PRESET]",
            help="Give a host a stack, e.g. ws1=scps:fy97-rate; * is all hosts. "
            "Commands on a host of stack scps use SCPS-TP; may be repeated.",
        ),
    ] = None,
    engine: Annotated[str, ENGINE] = "live",
    containers: Annotated[str, CONTAINERS] = "process",
    keep: Annotated[
        Path | None,
        typer.Option(
            help="Keep captures in this folder, and transcript.yaml: your commands as a scenario to run again. "
            "Both are written during the session. Without it, a session with a capture makes session-1, session-2 …"
        ),
    ] = None,
    bash: Annotated[
        bool,
        typer.Option(
            "--bash", help="Start the guest's own shell instead of the prompt, for example to type `mn --custom …`."
        ),
    ] = False,
    trust: Trust = False,
) -> None:
    """Start a network on the wall clock, with a prompt.

    The prompt is Mininet's: type a node and a command to run the command in that node, such as "ws1 ping -c 3 ws2".
    "iperf ws1 ws2" measures, "link hop ber 1e-5" changes a link, "watch" shows what happens, and "exit" stops the lab.

    Examples: scpslab shell fy97 · scpslab shell fy97 --set links.hop.forward.rate="9600 bit/s" · scpslab shell fy97
    --stack "*=scps:fy97-rate" --keep session
    """
    given = _given(set_ or [])
    if bash and is_path(topology):
        raise UsageError(
            f"--bash: found {topology}, which is not in the guest; expected a topology of the project. "
            "Leave --bash out."
        )
    kind: Prompt = "bash" if bash else "mininet"
    stacks = _stacks(stack or [], kind)
    kind_of_nodes: Containers = "docker" if containers == "docker" else "process"
    plan = shell_plan(topology, given, stacks, kind, kind_of_nodes, is_trusted=trust)
    hosts = [node.name for node in plan.network.nodes if isinstance(node, Host)]
    said = _nested(given)
    session = Session(keep or new_folder(), topology, said, _of_hosts(stacks, hosts), is_asked_for=keep is not None)
    runner = ENGINES[engine]()
    notes = Notes(plain_console(stderr=True))
    runner.prepare(notes, [plan])
    # From here on the terminal is the lab's.
    notes.settle()
    typer.echo(f"Captures come to {session.folder}, and your commands with them (transcript.yaml).", err=True)
    with scratch() as folder:
        try:
            code = runner.interact(plan, folder, session.update)
        except Interrupted:
            code = INTERRUPTED_EXIT
        session.update(folder / "cell" / "out")
    for path in session.files:
        typer.echo(path)
    if code:
        raise typer.Exit(INTERRUPTED_EXIT if code == INTERRUPTED_EXIT else LabError.exit_code)


def _given(texts: list[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f'--set: found "{text}"; expected KEY=VALUE, such as mtu="576 B". Correct the option.')
        if name.startswith("hosts."):
            raise UsageError(f'--set: found "{text}"; expected hosts to be set by --stack. Use it.')
        values[name] = value
    return values


def _nested(given: dict[str, str]) -> dict[str, Any]:
    """What a scenario says instead; a key without dots is a parameter."""
    said: dict[str, Any] = {}
    for name, value in given.items():
        *places, key = name.split(".") if "." in name else ("parameters", name)
        mapping_at(said, places)[key] = value
    return said


def _stacks(texts: list[str], kind: Prompt) -> dict[str, dict[str, str]]:
    """What a scenario says of the hosts, by their names; "*" is all of them."""
    stacks: dict[str, dict[str, str]] = {}
    if texts and kind == "bash":
        raise UsageError(
            "--stack: found it beside --bash; expected the prompt, where hosts have stacks. Leave one of them out."
        )
    for text in texts:
        host, equals, value = text.partition("=")
        stack, colon, preset = value.partition(":")
        if not equals or not host or not stack or bool(colon) is not bool(preset):
            raise UsageError(
                f'--stack: found "{text}"; expected HOST=STACK or HOST=STACK:PRESET, such as ws1=scps:fy97-rate. '
                "Correct the option."
            )
        stacks[host] = {"stack": stack, **({"preset": preset} if preset else {})}
    return stacks


def _of_hosts(stacks: dict[str, dict[str, str]], hosts: list[str]) -> dict[str, dict[str, str]]:
    return {host: dict(words) for one, words in stacks.items() for host in (hosts if one == "*" else [one])}


def shell_plan(
    topology: str,
    given: dict[str, str],
    stacks: dict[str, dict[str, str]] | None = None,
    kind: Prompt = "mininet",
    containers: Containers = "process",
    *,
    is_trusted: bool = False,
) -> Plan:
    """The plan of a topology for a session: that of a scenario in which commands run on every host, so that a
    transcript repeats the session.

    Raises:
        ScenarioError: unknown topology, parameter, host, stack or preset.
    """
    try:
        topology_file = OnDisk(is_trusted=is_trusted).find(topology, Path())
        said = _nested(given)
        network = topology_file.described(said.get("parameters", {}))
    except TopologyError as error:
        raise ScenarioError(f"topology: {error}") from error
    except units.UnitError as error:
        raise ScenarioError(f"--set: {error}. Correct the option.") from error
    if containers == "docker" and network.serial_links:
        raise UsageError(
            f"--containers: found docker for {topology}, which has a serial link; expected process. Remove the option."
        )
    hosts = [node.name for node in network.nodes if node.kind == "host"]
    events = [{"at": "0 s", "node": host, "command": "true"} for host in hosts]
    place = str(Path(topology).resolve()) if is_path(topology) else topology
    text = {
        "kind": "scenario",
        "version": 1,
        "title": "A session",
        "topology": place,
        **said,
        "hosts": _of_hosts(stacks or {}, hosts),
    }
    with scratch() as folder:
        path = folder / "shell.yaml"
        path.write_text(written({**text, "containers": containers, "events": events}))
        try:
            (cell,) = scenario.cells(scenario.load(str(path), topologies=OnDisk(is_trusted=is_trusted)))
        except ScenarioError as error:
            # The file is none of the user's.
            said_of_hosts = re.sub(rf"{re.escape(str(path))}:\d+: hosts\.", "--stack: ", str(error))
            raise ScenarioError(re.sub(rf"{re.escape(str(path))}:\d+: ", "--set: ", said_of_hosts)) from error
        planned = planning.plan(cell)
    own = replace(planned.cell, id="shell", scenario="shell", kernel_seed="", shell=kind, limits=LIMITS, events=())
    return replace(planned, cell=own)
