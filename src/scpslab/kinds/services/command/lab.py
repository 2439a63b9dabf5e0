"""A third party's service: a command in a node's shell, ready when it listens at a port or a command of the user's says
so.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from scpslab.lab.loop import SECOND_NS, Loop
from scpslab.lab.services import KINDS, Service, listens

from scpslab.kinds.services.command.plan import CommandService

if TYPE_CHECKING:
    from scpslab.lab.network import LabNetwork

# What a program prints is kept in the guest's memory.
LOG_LIMIT_BYTES = 1 << 20
LEFT_OUT = b"\n(the rest is left out)\n"


class Command(Service):
    """`sh -c COMMAND`. Without a word about when it is ready, it is ready once it runs."""

    what = "the command"
    look_again_ns: ClassVar[int | None] = SECOND_NS // 10

    def __init__(self, plan: CommandService, network: LabNetwork, loop: Loop) -> None:
        super().__init__(plan.name, plan.node, network, loop)
        self.plan, self.start_limit_ns = plan, plan.timeout_ns
        self._question: subprocess.Popen[bytes] | None = None
        self._room = LOG_LIMIT_BYTES

    def argv(self) -> list[str]:
        """The shell and its command."""
        return ["sh", "-c", self.plan.command]

    def launch(self) -> None:
        """Starts the program; all that it prints goes to its log, as long as there is room."""
        self.log.write_bytes(b"")
        self.process = self._popen(subprocess.PIPE, subprocess.STDOUT)
        assert self.process.stdout is not None
        self.loop.on_data(self.process.stdout, self._note)
        self.loop.on_exit(self.process, self._ended)

    def is_ready(self) -> bool:
        """Whether its port listens, or its command has ended with 0; nothing is asked after it has ended itself."""
        if self.exit_code is not None:
            return False
        if self.plan.ready_port is not None:
            return listens(self.network.pid(self.node) or 0, self.plan.ready_port)
        return self.plan.ready_command is None or self._says_yes(self.plan.ready_command)

    def _says_yes(self, command: str) -> bool:
        if self._question is None:
            nothing = subprocess.DEVNULL
            self._question = self.network.node(self.node).start(
                ["sh", "-c", command], stdin=nothing, stdout=nothing, stderr=nothing, cwd="/tmp"
            )
            return False
        answer = self._question.poll()
        if answer is not None:
            self._question = None
        return answer == 0

    def stop(self) -> None:
        """Asks it to end, and what asks whether it is ready."""
        super().stop()
        if self._question is not None:
            self._question.kill()

    def _note(self, data: bytes) -> None:
        if self._room:
            kept = data[: self._room]
            self._room -= len(kept)
            with Path(self.log).open("ab") as log:
                log.write(kept if self._room else kept + LEFT_OUT)


KINDS.register("command", Command)
