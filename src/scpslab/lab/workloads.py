"""What every workload is: prepared before the epoch, started at its time, over when its processes are."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from scpslab.core.kinds import Registered, Registry
from scpslab.core.names import file_name
from scpslab.core.strict_json import JsonObject, count
from scpslab.lab.context import Context
from scpslab.lab.records import Records, Trace
from scpslab.lab.services import Service
from scpslab.plan.workloads import Traffic

Planned = TypeVar("Planned", bound=Traffic)
OnLine = Callable[[str], None]
OnExit = Callable[[int], None]
ToolOptions = Mapping[str, str | float | None]
Process = subprocess.Popen[bytes]
ANY_IPV6 = "::"  # every address of a node, where it has those of IPv6


KINDS: Registry[type[Workload[Any]]] = Registry("workloads", "lab")


class Workload(Registered, Generic[Planned], registry=KINDS):
    """Base of the kinds.

    `outcome` is "" while it runs, then "completed", or "incomplete" or "unsupported" with `reason`.
    """

    def __init__(self, spec: Planned, context: Context) -> None:
        self.spec, self.context, self.network = spec, context, context.network
        self.name, self.required = spec.name, spec.required
        self.records = Records(context.folders.records / file_name(self.name, suffix=".jsonl"))
        # A folder of the workload's own in its nodes.
        self.folder = f"/tmp/{file_name(self.name)}"
        # Where a kind has made it, by node: its files are memory, which `close` gives back.
        self.folders: dict[str, Path] = {}
        self.outcome, self.reason = "", ""
        self.processes: list[subprocess.Popen[bytes]] = []
        self.services: list[Service] = []

    def prepare(self) -> None:
        """Starts what must listen before the epoch."""

    def begin(self) -> None:
        """Starts the traffic, and tells it."""
        self.context.live.state(self.name, "started")
        self.start()

    def start(self) -> None:
        """Starts the traffic."""
        raise NotImplementedError

    def stop(self) -> None:
        """Asks what still sends to end; the cell waits until it is quiet."""
        self.close()

    def quiet(self) -> bool:
        """Whether nothing of the workload sends any more."""
        return self.ended()

    def close(self) -> None:
        """Asks everything that still runs to end; called again when nothing is under way any more."""
        for service in self.services:
            service.is_ending = True
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for folder in self.folders.values():
            shutil.rmtree(folder, ignore_errors=True)

    def ended(self) -> bool:
        """Whether every process of the workload has ended."""
        return all(process.poll() is not None for process in self.processes)

    def traces(self, _node: str) -> list[Trace]:
        """Traces of SCPS programs of the workload on a node, once they have ended."""
        return []

    def finish(self, outcome: str, reason: str = "") -> None:
        """Settles the outcome, once."""
        if not self.outcome:
            self.outcome, self.reason = outcome, reason
            self.context.live.state(self.name, outcome)

    def fail(self, reason: str, log_of: str = "", outcome: str = "incomplete") -> None:
        """Settles the outcome. `log_of`: the node whose log says more."""
        more = f"; see logs/{self.name}-{log_of}.log" if log_of else ""
        self.finish(outcome, f"{self.name}: {reason}{more}")

    def give_up_after(self, timeout_ns: int) -> None:
        """Gives up when so much time has passed, unless there is an outcome by then."""
        self.context.loop.at(self.context.now_ns() + timeout_ns, self.give_up)

    def give_up(self) -> None:
        """Ends without success, unless there is an outcome."""
        if not self.outcome:
            self.time_out()
            self.stop()

    def time_out(self) -> None:
        """Settles the outcome, if there is none; what still runs takes its leave."""
        self.fail("the timeout ran out")

    def serve(self, service: Service, *, wait: bool = True) -> None:
        """Starts a service of the workload's own, and waits until it serves. It ends with the workload."""
        self.context.services.start(service, wait=wait)
        self.services.append(service)
        self.processes.append(service.process)

    def run(self, node: str, argv: list[str], on_line: OnLine, on_exit: OnExit, keep: int | None = None) -> Process:
        """Starts a program in a node; its output comes line by line, its errors go to logs/<workload>-<node>.log.

        It inherits the descriptor `keep`.
        """
        return self.run_command(node, [*self.network.node(node).prefix, *argv], on_line, on_exit, keep)

    def run_command(
        self, node: str, command: list[str], on_line: OnLine, on_exit: OnExit, keep: int | None = None, **given: int
    ) -> Process:
        """As `run`, for a command that enters the node by itself. `given`: its `stdin`, if it has one."""
        with (self.context.folders.logs / file_name(self.name, node, suffix=".log")).open("ab") as errors:
            kept = () if keep is None else (keep,)
            stdin, stdout = given.get("stdin", subprocess.DEVNULL), subprocess.PIPE
            with self.network.owners.owning(self.name):
                process = subprocess.Popen(
                    command, stdin=stdin, stdout=stdout, stderr=errors, pass_fds=kept, cwd="/tmp"
                )

        def hear(line: str) -> None:
            # What a program says after the cell has ended is in no record.
            if not self.records.closed:
                on_line(line)

        self.context.loop.on_lines(process.stdout, hear)
        self.context.loop.on_exit(process, on_exit)
        self.processes.append(process)
        return process

    def run_tool(self, node: str, tool: str, options: ToolOptions, on_line: OnLine, on_exit: OnExit) -> Process:
        """Starts one of labtool's programs; options that are None are left out."""
        words = {key: int(value) if isinstance(value, bool) else value for key, value in options.items()}
        texts = {key: str(value) for key, value in words.items() if value is not None}
        return self.run_command(node, self.network.node(node).tool(tool, texts), on_line, on_exit)

    def scps(self, node: str) -> str:
        """The SCPS program of a node."""
        return self.network.node(node).program("scps")

    def kernel_timeouts(self, node: str) -> int:
        """Retransmission timeouts of a node's kernel TCP since it came up (`TCPTimeouts` of netstat(8))."""
        lines = [line.split() for line in Path(f"/proc/{self.network.pid(node)}/net/netstat").read_text().splitlines()]
        counts = {
            name: value
            for names, values in zip(lines[::2], lines[1::2], strict=True)
            for name, value in zip(names, values, strict=True)
        }
        return int(counts["TCPTimeouts"])

    def in_seconds(self, fields: JsonObject) -> JsonObject:
        """A labtool record with its `…_ns` instants turned into `…_t_s` since the epoch; an instant that never came (0)
        is null.
        """
        turned: JsonObject = {}
        for key, value in fields.items():
            if not key.endswith("_ns"):
                turned[key] = value
                continue
            name = "t_s" if key == "t_ns" else key.removesuffix("_ns") + "_t_s"
            turned[name] = self.context.epoch.t_s(at_ns) if (at_ns := count(fields, key)) else None
        return turned
