"""What generates traffic, as scenarios and planning know it: a folder a kind in scpslab.kinds; some of it runs a Python
file of the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from scpslab.core.errors import ScenarioError
from scpslab.core.kinds import Registered, Registry
from scpslab.core.names import node_and_link
from scpslab.core.problems import Problem, UnfitError
from scpslab.core.seeds import stream, uniform
from scpslab.documents.parts import OneOfKinds, Part, Spelt, key
from scpslab.documents.quantities import Name, PositiveDuration, Quantity, Size, Start
from scpslab.plan import workloads as planned
from scpslab.plan.np import NpEnd
from scpslab.plan.paths import Paths, Way
from scpslab.plan.programs import FILE, LEAST_PACKET_BYTES
from scpslab.plan.values import LONGEST_TEXT
from scpslab.scenario.kinds import planned_from
from scpslab.scenario.stacks import NodePlan

# 48 bits: whole numbers that every language and JSON reader keeps exactly.
SEED_DIGITS = 12
# A host, or HOST.LINK.
END_PATTERN = r"^[a-z][a-z0-9_-]{0,39}(\.[A-Za-z0-9_][A-Za-z0-9_+=,-]{0,99})?$"
End = Annotated[str, Spelt(END_PATTERN, 'a host, or HOST.LINK for its address on a link, such as "ws2" or "ws2.hop"')]


def timeout_key(default: str, event: str = "the transfer is given up") -> Any:
    """The key `timeout`, the time after which something happens to a transfer that is not complete."""
    return key(default, says=f"Time after which {event}; the cell then counts as incomplete.", example=default)


def start_key(default: str) -> Any:
    """The key `start`."""
    says = "Start time, counted from the epoch (the moment when the network is up). {random: 0 s..5 s}: drawn for each "
    return key(default, says=f"{says}repeat, by the workload's name and the seed.", example=default)


MODE = key(
    "active",
    says="Which end opens the data connection: active: the server (PORT, as with programs of the period); "
    "passive: the client.",
    example="passive",
)
REQUIRED = key(
    True,
    says="Whether the cell waits for the workload, and is incomplete if the workload does not complete.",
    example=True,
)


KINDS: Registry[type[Traffic]] = Registry("workloads", "scenario")


class Traffic(Registered, Part, registry=KINDS):
    """What a scenario says of a workload: the keys of all of them, and what follows from a kind's own.

    `is_load`: others are measured under it; a host that does nothing else has the image of generators. `unmodified`:
    what its programs are in words, if they know the kernel's TCP only.

    Attributes:
        name: Name of the workload and of its record.
        from_: The host that sends, or HOST.LINK: the host with its address on that link, which answers go to.
        to: The host that receives, or HOST.LINK: its address on that link, which the packets go to. Default: its first
            address.
    """

    is_load: ClassVar[bool] = False
    unmodified: ClassVar[str] = ""

    name: Name = key(example="transfer")
    from_: End = key(alias="from", example="ws1")
    to: End = key(example="ws2")
    start: Start = start_key("1 s")

    if TYPE_CHECKING:
        # Each kind declares it where it stands among its keys.
        kind: str

    @property
    def sender(self) -> str:
        """The host that sends."""
        return node_and_link(self.from_)[0]

    @property
    def receiver(self) -> str:
        """The host that receives."""
        return node_and_link(self.to)[0]

    @property
    def is_unmodified(self) -> bool:
        """Whether its programs know the kernel's TCP only: a host of stack `scps` then needs a gateway of its own."""
        return bool(self.unmodified)

    def serves(self) -> tuple[str, int] | None:
        """The host and port where it listens: the receiving host, if it has a port."""
        port: int | None = getattr(self, "port", None)
        return None if port is None else (self.receiver, port)

    def problems(self, around: Surroundings) -> Iterable[Problem]:
        """What does not fit, once both hosts are known."""
        if not self.is_unmodified:
            return
        for end in (self.sender, self.receiver):
            if around.hosts[end].carrier.runs_scps and (why := around.hosts[end].no_gateway):
                expected = "a host whose gateway carries unmodified programs"
                advice = "Remove the setting from the host, or use kind bulk or fp."
                yield Problem(("kind",), f"{self.unmodified} on {end}, which has {why}", expected, advice)
        if around.has_np_router:
            found = f"{self.unmodified} on a path with a router of SCPS-NP, which forwards no IP"
            yield Problem(("to",), found, "routers of IP", "Use kind bulk or fp.")

    @property
    def most(self) -> int:
        """How many transfers the plan has of it at most, each with a port from `serves` on and programs of its own."""
        return 1

    def packets(self) -> int:
        """How many packets a capture may see of it."""
        return 0

    def plans(self, setting: Setting) -> list[planned.Traffic]:
        """Its parts of the plan."""
        return [self.plan(setting)]

    def plan(self, setting: Setting) -> planned.Traffic:
        """Its part of the plan, where it is one."""
        start = {"start_ns": self.start_ns(setting), "drawn_start": self.start.earliest is not None or None}
        return planned_from(planned.WORKLOADS[self.kind], self, **start, **self.derived(setting))

    def start_ns(self, setting: Setting) -> int:
        """When it starts in the cell's repeat."""
        return self.start.at(setting.draws("start", self.name, 1)[0])

    def derived(self, setting: Setting) -> Mapping[str, object]:
        """What its part of the plan has besides the keys of the scenario, or in place of them."""
        return {"from_": self.sender, "to": self.receiver, "to_ip": setting.addresses[self.to]}


class Transfer(Traffic):
    """A workload that sends a number of bytes and is given up after a time; each kind declares these keys where they
    stand among its own.
    """

    if TYPE_CHECKING:
        size: Size
        port: int
        timeout: PositiveDuration

    def problems(self, around: Surroundings) -> Iterator[Problem]:
        """The size must fit, at the slowest hop and without a loss."""
        yield from super().problems(around)
        need_ns = planned.ns_to_send(self.size, around.slowest_bps)
        for limit, time in (("timeout", self.timeout), ("limits.lab_time", around.lab_time)):
            if need_ns > time:
                found = f'"{self.size.text}", {need_ns / planned.SECOND_NS:.6g} s at the slowest hop'
                expected = f'it to fit in {limit}, "{time.text}"'
                yield Problem(("size",), found, expected, f"Send less or raise {limit}.")
                return

    def derived(self, setting: Setting) -> Mapping[str, object]:
        """Its bytes, and the seed of what is in them."""
        seed = setting.seed("payload", self.name)
        return {**super().derived(setting), "bytes_": self.size, "payload_seed": seed}


@dataclass(frozen=True)
class Surroundings:
    """What a workload is held against in a scenario: what is planned for hosts, and the way between its ends.

    `has_np_router`: a router of SCPS-NP is on it, which forwards nothing else. `mtu_bytes`: the largest IP packet that
    fits through; `slowest_bps` None: no hop is limited; `lab_time`: its limit; `folder`: where the
    scenario's own files are.
    """

    hosts: Mapping[str, NodePlan]
    mtu_bytes: int
    slowest_bps: int | None
    lab_time: PositiveDuration
    has_np_router: bool
    folder: Path
    # What the header of IP has more than in IPv4.
    further_bytes: int = 0


@dataclass(frozen=True)
class Setting:
    """What workloads are planned in: what is planned for hosts, the address of every end that a workload has, and where
    seeds come from.

    `paths`: those of the network; `take_scps`: the address and device of a host's next `scps` program; `np_end`: what
    such a program knows of SCPS-NP, given its default precedence; `virtual_ns`: the limit of virtual time; `folder`:
    where the scenario's own files are.
    """

    paths: Paths
    hosts: Mapping[str, NodePlan]
    addresses: Mapping[str, str]
    root_seed: int
    repeat: int
    virtual_ns: int
    folder: Path
    take_scps: Callable[[str], tuple[str, str]]
    np_end: Callable[[str, int], NpEnd]

    def way(self, source: str, destination: str) -> Way:
        """The hops from one end of a workload to another."""
        return self.paths.path(node_and_link(source)[0], node_and_link(destination)[0], self.addresses[destination])

    def source(self, opener: str, contacted: str) -> str:
        """The address that one end contacts another one from: the one that it names, or the one that the host's routes
        give.
        """
        host, link = node_and_link(opener)
        return self.addresses[opener] if link else self.paths.source(host, self.addresses[contacted])

    def seed(self, purpose: str, *names: str) -> int:
        """A seed of the cell's repeat."""
        return int(stream(self.root_seed, purpose, *names, self.repeat)[:SEED_DIGITS], 16)

    def key_seed(self, name: str) -> str:
        """The seed of a key of SCPS-SP, of the cell's repeat."""
        return stream(self.root_seed, "scps-sp", name, self.repeat)

    def draws(self, purpose: str, name: str, number: int) -> list[float]:
        """Numbers from 0 to 1, of the cell's repeat."""
        return uniform(stream(self.root_seed, purpose, name, self.repeat), number)


def kernel_setting(workload: Traffic, key: str, around: Surroundings) -> Iterator[Problem]:
    """A setting of the kernel's TCP, which on a host of stack `scps` would reach no further than the host's own
    gateway.
    """
    value = getattr(workload, key)
    ends = [end for end in (workload.sender, workload.receiver) if around.hosts[end].carrier.runs_scps]
    if value is not None and ends:
        text = value.text if isinstance(value, Quantity) else value
        found = f'"{text}" for a flow of {ends[0]}, whose gateway carries it over SCPS-TP'
        yield Problem((key,), found, "none", "Remove the key; settings of SCPS-TP belong to the host.")


Workload = Annotated[Traffic, OneOfKinds(KINDS)]


ProgramFile = Annotated[str, Spelt(f"^{FILE}$", "the name of a Python file: letters, digits, - and _, then .py")]


class Programmed(Transfer):
    """A transfer of datagrams that a Python file decides on.

    `named_by`: the key that names the file.
    """

    named_by: ClassVar[str]

    if TYPE_CHECKING:
        packet: Size

    @property
    def program_file(self) -> str:
        """The file, in the folder of the scenario."""
        name: str = getattr(self, self.named_by)
        return name

    def problems(self, around: Surroundings) -> Iterator[Problem]:
        """What does not fit."""
        if not LEAST_PACKET_BYTES <= self.packet <= around.mtu_bytes:
            expected = f"{LEAST_PACKET_BYTES} B to {around.mtu_bytes} B, the MTU of the path"
            yield Problem(("packet",), f'"{self.packet.text}"', expected, "Correct the value.")
        try:
            _program(around.folder / self.program_file)
        except UnfitError as error:
            yield error.at((self.named_by,))
        yield from super().problems(around)

    def derived(self, setting: Setting) -> Mapping[str, object]:
        """The file's text goes with the plan."""
        return {
            **super().derived(setting),
            "file": self.program_file,
            "code": read_program(setting.folder / self.program_file),
            "from_ip": setting.source(self.from_, self.to),
        }


def read_program(path: Path) -> str:
    """The text of a program; it is read and not run.

    Raises:
        ScenarioError: there is no such file, or it is no Python.
    """
    try:
        return _program(path)
    except UnfitError as error:
        raise ScenarioError(str(error)) from error


def _program(path: Path) -> str:
    expected = "a Python file"
    try:
        # A device or a pipe would be read for ever, and a link could lead to a file that is not for others: a plan
        # holds the text.
        if path.is_symlink() or not path.is_file():
            raise UnfitError(f'no ordinary file "{path.name}" beside the scenario', expected, "Correct the name.")
        with path.open("rb") as file:
            code = file.read(4 * LONGEST_TEXT + 1).decode()
    except OSError as error:
        found, advice = str(error.strerror), "Change its rights."
        raise UnfitError(found, f"{expected} that can be read", advice, path.name) from error
    except UnicodeDecodeError as error:
        raise UnfitError("bytes that are not UTF-8", expected, "Save it as UTF-8.", path.name) from error
    if len(code) > LONGEST_TEXT or "\0" in code:
        raise UnfitError(f"more than {LONGEST_TEXT} characters, or NUL", expected, "Make it shorter.", path.name)
    return code.replace("\r\n", "\n")
