"""A plan's script: changes of links and commands in nodes, at their times."""

from __future__ import annotations

import signal
import subprocess
from functools import partial

from scpslab.core.names import file_name
from scpslab.lab.changes import LinkChanges
from scpslab.lab.context import Context
from scpslab.lab.records import Records
from scpslab.plan.script import LinkStep, RunStep, Step

NOT_FOUND = 127  # what sh says of a command that is not there, POSIX.1-2017 2.8.2


class Script:
    """The steps of a cell.

    `reason` names the required command that did not end in time, `broken` one that does not exist.
    """

    def __init__(self, context: Context, steps: tuple[Step, ...]) -> None:
        self.context, self.steps = context, steps
        self.reason = self.broken = ""
        self.left: int = sum(isinstance(step, LinkStep) or step.required for step in steps)
        self.processes: list[subprocess.Popen[bytes]] = []
        if steps:
            self.records = Records(context.folders.records / "script.jsonl")
            self.changes = LinkChanges(context.network, context.settled)

    def schedule(self) -> None:
        """Puts the steps on the loop."""
        for number, step in enumerate(self.steps, start=1):
            self.context.loop.at(self.context.epoch.realtime_ns + step.t_ns, partial(self._do, number, step))

    def done(self) -> bool:
        """Whether every step that the cell waits for is over."""
        return self.left <= 0

    def stop(self) -> None:
        """Ends commands that still run."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)

    def ended(self) -> bool:
        """Whether every command has ended."""
        return all(process.poll() is not None for process in self.processes)

    def close(self) -> None:
        """Ends what did not end when it was asked to, and the record."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
        if self.steps:
            self.records.close()

    def _do(self, number: int, step: Step) -> None:
        if isinstance(step, LinkStep):
            seeds = step.seeds or ("",) * len(step.directions)
            for name, seed in zip(step.directions, seeds, strict=True):
                self.changes.change(step.link, name, step.change, step.value, seed)
            self.records.write(
                t_s=self.context.epoch.now_s(), step=number, link=step.link, change=step.change, value=step.value
            )
            self.left -= 1
        else:
            self._run(number, step)

    def _run(self, number: int, step: RunStep) -> None:
        start_t_s = self.context.epoch.now_s()
        with (self.context.folders.logs / file_name("script", str(number), step.node, suffix=".log")).open("wb") as log:
            node = self.context.network.node(step.node)
            process = node.start(
                ["sh", "-c", step.command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/tmp"
            )
        self.processes.append(process)

        def ended(code: int) -> None:
            if not self.records.closed:
                self.records.write(
                    t_s=start_t_s,
                    step=number,
                    node=step.node,
                    command=step.command,
                    end_t_s=self.context.epoch.now_s(),
                    exit_code=code,
                )
            self.left -= step.required
            if code == NOT_FOUND:
                self.broken = (
                    self.broken
                    or f"script step {number}: the shell found no such command (exit code {NOT_FOUND}): {step.command}"
                )

        def give_up() -> None:
            if process.poll() is None:
                self.reason = self.reason or f"script step {number}: patience ran out: {step.command}"
                process.send_signal(signal.SIGTERM)

        self.context.loop.on_exit(process, ended)
        self.context.loop.at(self.context.now_ns() + step.patience_ns, give_up)
