"""The small interface that every engine has: prepare what the engine needs, and run one cell's plan into a folder."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self

from scpslab.core.errors import CapabilityError, UsageError
from scpslab.lab.records import Status
from scpslab.plan import Plan
from scpslab.plan.stacks import STACKS
from scpslab.setup import Say


@dataclass(frozen=True)
class CellSample:
    """What a running cell said of itself: a copy of a probe's record, or what became of a workload (`state`).

    `source`: the name of the probe or workload; `t_s`: when, in the cell's time, s since its epoch.
    """

    t_s: float
    source: str
    values: Mapping[str, str | float | None]


@dataclass(frozen=True)
class CellRun:
    """One cell to run: its plan (docs/plan-format.md), the folder for its files, and the CPU core that it may use
    (None: any).

    `hear`: gets samples while the cell runs, from a thread of the engine's. A cell whose lab was lost begins anew.
    """

    plan: Plan
    folder: Path
    core: int | None = None
    hear: Callable[[CellSample], None] | None = None


@dataclass(frozen=True)
class Finding:
    """Something that an engine needs: it is ok, works with a restriction (warning), or cannot run (missing).

    `fix`: the command that fixes it.
    """

    name: str
    state: Literal["ok", "warning", "missing"]
    found: str
    fix: str = ""


class LabProcess(Protocol):
    """A lab that runs, as subprocess.Popen has it."""

    @property
    def pid(self) -> int:
        """Its process id."""

    @property
    def returncode(self) -> int | None:
        """How it ended; None while it runs."""

    def poll(self) -> int | None:
        """How it ended, after a look; None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end; raises subprocess.TimeoutExpired."""

    def kill(self) -> None:
        """Ends it, and all that it holds, at once; one that has ended already is no error."""


class Engine(ABC):
    """An engine. `deterministic` engines give the same bytes every time, so their results are cached.

    `summary`: what it is, as lists of engines have it behind its name. `reach`: what the commands of a cell can do to
    this machine, as a sentence; "" where that is nothing.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    deterministic: ClassVar[bool]
    # Whether a person can use the lab: nobody could keep up with virtual time.
    interactive: ClassVar[bool] = False
    reach: ClassVar[str] = ""
    # Whether nodes can have packages and programs that the machine has not (plan/packs.py).
    takes_packs: ClassVar[bool] = False

    def __init__(self, *, snapshots: bool = True) -> None:
        """`snapshots`: cells may go on from a network that was set up for others too, in engines that can do so.

        The results are the same.
        """
        self.snapshots = snapshots

    def findings(self) -> list[Finding]:
        """What this machine has, and lacks, of what the engine needs."""
        return []

    @abstractmethod
    def prepare(self, say: Say, plans: Iterable[Plan]) -> None:
        """Builds or finds what the engine needs for these plans.

        Raises:
            CapabilityError: this machine cannot run them; the message says what to do.
        """

    @abstractmethod
    def hash(self, plan: Plan) -> str:
        """Hash of every part of a prepared engine that determines the plan's results."""

    def facts(self) -> dict[str, dict[str, Any]]:
        """What a manifest says of the prepared engine besides its hashes."""
        return {}

    @abstractmethod
    def run(self, cell: CellRun) -> Status:
        """Runs a cell to its end and returns its status; the folder then holds plan, status, environment, records,
        captures, logs.

        A cell that hangs is ended at its limits and gets the status `failed`. Thread-safe.
        """

    def interact(
        self,
        plan: Plan,
        folder: Path,
        meanwhile: Callable[[Path], None],
        at: Callable[[], AbstractContextManager[Any]] | None = None,
    ) -> int:
        """Runs a plan at the user's terminal until the user leaves; returns the lab's exit code. `at`: another console.

        The lab's files are in `folder`/cell/out. `meanwhile` gets this path several times a second while the lab runs,
        and must not trust its content.

        Raises:
            Interrupted: the terminal was closed, or this process was asked to end.
            UsageError: the engine is not `interactive`.
        """
        raise UsageError(
            f"engine {self.name}: found an engine without a prompt; expected an engine on the wall clock. "
            "Choose live or host."
        )

    def close(self) -> None:  # noqa: B027  # most engines keep nothing
        """Gives back what the engine keeps from one cell to the next."""

    @abstractmethod
    def stop(self) -> None:
        """Ends every running cell by process id; `run` then raises Interrupted."""


class Interrupted(Exception):  # it is no error
    """The user ended the cell or the session. Nothing of a cell is kept."""


@dataclass(frozen=True)
class Needs:
    """The needs of a plan beyond kernel TCP on process nodes: the `scps` program, Docker, a kernel with IPv6."""

    stack: bool
    docker: bool
    ipv6: bool = False

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """The needs of a plan.

        A plan needs the `scps` program as a stack, as the channel of a serial link, as a gateway, or for a workload
        that it carries.
        """
        network, cell = plan.network, plan.cell
        is_run = any(service.runs_scps for service in cell.services) or any(
            workload.runs_scps for workload in cell.workloads
        )
        speaks = is_run or any(STACKS[node.stack].runs_scps for node in network.speaking)
        return cls(bool(network.serial_links) or speaks, network.containers == "docker", network.is_ipv6)


def own_images(plan: Plan) -> list[str]:
    """Names of the images that do not belong to the project."""
    return sorted(
        {node.container.image for node in plan.network.speaking if STACKS[node.stack].is_own_image and node.container}
    )


def check_packs(engine: Engine, plans: Iterable[Plan]) -> None:
    """Checks that an engine can do what the plans ask for: packages, and events that follow a first run.

    Raises:
        CapabilityError: it cannot.
    """
    plans = list(plans)
    if not engine.deterministic and any(step.after for plan in plans for step in plan.cell.events):
        why = "for no run there is like the one before"
        raise CapabilityError(
            f"engine {engine.name}: found events with after; expected none, {why}. Use --engine virtual."
        )
    packs = [plan.network.pack for plan in plans if plan.network.pack]
    if packs and not engine.takes_packs:
        named = ", ".join(packs[0].packages) or "programs of the scenario's"
        advice = "Use --engine virtual or live, or install them on this machine and remove the keys."
        found = f"found packages or programs ({named})"
        raise CapabilityError(f"engine {engine.name}: {found}; expected none, for its nodes are this machine. {advice}")


def not_promised(plans: Iterable[Plan]) -> str:
    """Why cells in virtual time may have other bytes in each run: programs of somebody else's images may ask the
    processor; "" if none can.
    """
    names = sorted({name for plan in plans for name in own_images(plan)})
    found = (
        f"found hosts with images of others ({', '.join(names)}), whose programs may use the processor's random "
        "numbers (RDRAND, RDSEED)"
    )
    return f"{found}: the bytes of their cells are not promised to be the same (docs/virtual-time.md)" if names else ""
