"""`scpslab shell`: a prompt on a topology, on the wall clock.

Options:
    set: Set a property of a link, e.g. links.hop.forward.rate='9600 bit/s', or a parameter of the topology, e.g.
        mtu='576 B'; may be repeated.
    stack: Give a host a stack, e.g. ws1=scps:fy97-rate; * is all hosts. Commands on a host of stack scps use SCPS-TP;
        may be repeated.
    keep: Keep captures in this folder, and transcript.yaml: your commands as a scenario to run again. Both are written
        during the session. Without it, a session with a capture makes session-1, session-2 …
"""

from __future__ import annotations

import itertools
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir
from typing import Annotated, Any, get_args

import typer

from scpslab import scenario
from scpslab.cli.options import Trust, choice, completed, engine_choice, texts
from scpslab.cli.tables import plain_console, say_to
from scpslab.core import units
from scpslab.core.errors import INTERRUPTED_EXIT, LabError, ScenarioError, UsageError
from scpslab.core.scratch import replace_text, scratch
from scpslab.documents.yaml_lines import written
from scpslab.engine import INTERACTIVE as ENGINES
from scpslab.engine.base import Engine, Interrupted
from scpslab.plan import Plan
from scpslab.plan.cell import Limits, Prompt
from scpslab.plan.network import Containers
from scpslab.plan.nodes import Host
from scpslab.runs import CellFiles
from scpslab.scenario import planning
from scpslab.scenario.paths import mapping_at
from scpslab.scenario.topologies import OnDisk, TopologyError, is_path, names

ENGINE = engine_choice(ENGINES, "Engine to start it in")
CONTAINERS = choice("--containers", get_args(Containers), "Kind of nodes: process or docker.")
SAID = texts(__doc__)
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help=SAID["set"])]
Stacks = Annotated[list[str] | None, typer.Option("--stack", metavar="HOST=STACK[:PRESET]", help=SAID["stack"])]
Keep = Annotated[Path | None, typer.Option(help=SAID["keep"])]
LIMITS = Limits(virtual_s=10**9, wall_s=10**9)


def shell(
    topology: Annotated[str, typer.Argument(metavar="[TOPOLOGY]", autocompletion=completed(names))] = "fy97",
    set_: Set = None,
    stack: Stacks = None,
    engine: Annotated[str, ENGINE] = "live",
    containers: Annotated[str, CONTAINERS] = "process",
    keep: Keep = None,
    bash: Annotated[bool, typer.Option("--bash")] = False,
    trust: Trust = False,
) -> None:
    """Start a network on the wall clock, with a prompt.

    The prompt is Mininet's: type a node and a command to run the command in that node, such as "ws1 ping -c 3 ws2".
    "iperf ws1 ws2" measures, "link hop ber 1e-5" changes a link, "link" shows links and losses, "exit" stops the lab.

    Examples: scpslab shell fy97 · scpslab shell fy97 --set links.hop.forward.rate="9600 bit/s" · scpslab shell fy97
    --stack "*=scps:fy97-rate" --keep session

    Options:
        topology: The topology to start; scpslab list topologies lists them. A path that begins with ./ or / is a file
            of your own.
        bash: Start the guest's own shell instead of the prompt, for example to type `mn --custom …`.
    """
    if bash and is_path(topology):
        expected = "expected a topology of the project. Leave --bash out."
        raise UsageError(f"--bash: found {topology}, which is not in the guest; {expected}")
    plan, session, runner = begun(
        topology, set_ or [], stack or [], engine, containers, keep, kind="bash" if bash else "mininet", trust=trust
    )
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


def begun(
    topology: str,
    set_: list[str],
    stack: list[str],
    engine: str,
    containers: str,
    keep: Path | None,
    *,
    kind: Prompt = "mininet",
    trust: bool = False,
) -> tuple[Plan, Session, Engine]:
    """What the options say: the plan, the session's folder, and an engine that is prepared."""
    given, stacks = _given(set_), _stacks(stack, kind)
    kind_of_nodes: Containers = "docker" if containers == "docker" else "process"
    plan = shell_plan(topology, given, stacks, kind, kind_of_nodes, is_trusted=trust)
    hosts = [node.name for node in plan.network.nodes if isinstance(node, Host)]
    said = _of_hosts(stacks, hosts)
    session = Session(keep or new_folder(), topology, _nested(given), said, is_asked_for=keep is not None)
    runner: Engine = ENGINES[engine]()
    runner.prepare(say_to(plain_console(stderr=True)), [plan])
    return plan, session, runner


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
        advice = "Leave one of them out."
        raise UsageError(f"--stack: found it beside --bash; expected the prompt, where hosts have stacks. {advice}")
    for text in texts:
        host, equals, value = text.partition("=")
        stack, colon, preset = value.partition(":")
        if not equals or not host or not stack or bool(colon) is not bool(preset):
            expected = "expected HOST=STACK or HOST=STACK:PRESET, such as ws1=scps:fy97-rate. Correct the option."
            raise UsageError(f'--stack: found "{text}"; {expected}')
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
        expected = "expected process. Remove the option."
        raise UsageError(f"--containers: found docker for {topology}, which has a serial link; {expected}")
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
    own = replace(
        planned.cell, id="shell", scenario="shell", kernel_seed="", shell=kind, limits=LIMITS, events=(), packets=None
    )
    return replace(planned, cell=own)


TRANSCRIPT = "transcript.jsonl"
FILE, FOLDER = stat.S_IFREG, stat.S_IFDIR
# The most that is read at once, so that a large file does not fill the memory.
MOST_BYTES = 1 << 20


def transcript(
    steps: list[dict[str, object]], topology: str, said: dict[str, Any], hosts: dict[str, dict[str, str]]
) -> str:
    """A session as a scenario: the commands with their times. `said`: of parameters and links.

    Nothing waits for a command that the user interrupted; one that is not there is left out.
    """
    events: list[dict[str, object]] = []
    for step in steps:
        if step["do"] not in ("interrupted", "not found"):
            events.append({key: value for key, value in step.items() if key != "do"})
        elif events:
            last = events.pop()
            if step["do"] == "interrupted":
                events.append({**last, "required": False})
    head = {"kind": "scenario", "version": 1, "title": f"A session on {topology}", "topology": topology}
    return written({**head, **said, **({"hosts": hosts} if hosts else {}), "events": events})


def new_folder() -> Path:
    """The first name that nobody has, for a session whose folder the user has not named."""
    place = Path() if os.access(".", os.W_OK) else Path(gettempdir())
    return next(path for number in itertools.count(1) if not (path := place / f"session-{number}").exists())


class Session:
    """The folder of a session: captures, and the commands as a scenario.

    `is_asked_for`: whether it is made for the commands alone.
    """

    def __init__(
        self,
        folder: Path,
        topology: str,
        said: dict[str, Any],
        hosts: dict[str, dict[str, str]] | None = None,
        *,
        is_asked_for: bool = True,
    ) -> None:
        self.is_asked_for = is_asked_for
        self.folder, self.topology, self.said, self.hosts = folder, topology, said, hosts or {}
        self._own_topology = b""
        if is_path(topology):
            # The scenario names a file beside it.
            self.topology = f"./{Path(topology).name}"
            self._own_topology = Path(topology).read_bytes()
        self._is_made = False
        if is_asked_for:
            self._refuse_what_is_there()
            self._make_folder()
        self.files: list[Path] = []
        self.steps: list[dict[str, object]] = []
        # By file of the lab: the number of bytes that were taken over.
        self._taken: dict[str, int] = {}

    def _refuse_what_is_there(self) -> None:
        copied = self.folder / self.topology
        is_other = self._own_topology and copied.exists() and copied.read_bytes() != self._own_topology
        left = [*self.folder.glob("*.pcap"), *self.folder.glob("transcript.yaml"), *([copied] if is_other else [])]
        if left:
            raise UsageError(f"--keep: found {left[0]}; expected a folder without a session. Choose another one.")

    def _make_folder(self) -> None:
        if self._is_made:
            return
        while not self._is_made:
            try:
                self.folder.mkdir(parents=True, exist_ok=self.is_asked_for)
                self._is_made = True
            except FileExistsError:
                # Another session has taken the name since.
                self.folder = new_folder()
        if self._own_topology:
            (self.folder / self.topology).write_bytes(self._own_topology)

    def update(self, out: Path) -> None:
        """Takes over what the lab has written to its folder `out` since the last time."""
        with _opened(out, FOLDER) as here:
            if here is None:
                return
            with _opened(TRANSCRIPT, FILE, here) as file:
                if file is not None:
                    self._take_steps(file)
            with _opened(CellFiles(out).captures.name, FOLDER, here) as captures:
                if captures is not None:
                    for name in sorted(os.listdir(captures)):  # noqa: PTH208  # the folder may have another name by now
                        if name.endswith(".pcap"):
                            self._take_capture(captures, name)

    def _take_steps(self, file: int) -> None:
        text = os.pread(file, MOST_BYTES, self._taken.get(TRANSCRIPT, 0))
        # The lab may be writing the line behind the last line break.
        lines = text[: text.rfind(b"\n") + 1]
        self._taken[TRANSCRIPT] = self._taken.get(TRANSCRIPT, 0) + len(lines)
        self.steps += [json.loads(line) for line in lines.splitlines()]
        if self.steps and self._is_made and (lines or not self.scenario.is_file()):
            self._write()

    @property
    def scenario(self) -> Path:
        """The file that the commands are kept in."""
        return self.folder / "transcript.yaml"

    def keep(self) -> Path:
        """Keeps the commands from now on, also without a capture; returns the file."""
        self._make_folder()
        self._write()
        return self.scenario

    def _write(self) -> None:
        replace_text(self.scenario, transcript(self.steps, self.topology, self.said, self.hosts))
        self._note(self.scenario)

    def _take_capture(self, captures: int, name: str) -> None:
        with _opened(name, FILE, captures) as file:
            if file is None:
                return
            self._make_folder()
            target = self.folder / name
            with target.open("ab" if name in self._taken else "wb") as copy:
                while piece := os.pread(file, MOST_BYTES, self._taken.setdefault(name, 0)):
                    copy.write(piece)
                    self._taken[name] += len(piece)
        self._note(target)

    def _note(self, path: Path) -> None:
        if path not in self.files:
            self.files.append(path)


@contextmanager
def _opened(name: str | Path, kind: int, parent: int | None = None) -> Iterator[int | None]:
    """A file or folder of the lab; None if there is no such thing.

    A link or a pipe may have been put there to be opened, so neither is.
    """
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)
    except OSError:
        yield None
        return
    try:
        yield descriptor if stat.S_IFMT(os.fstat(descriptor).st_mode) == kind else None
    finally:
        os.close(descriptor)
