"""A command in a node's shell as a service: all that it prints goes to its log, of which the end is kept."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from scpslab.lab.loop import SECOND_NS, Loop
from scpslab.lab.records import LOG_BYTES, keep_end
from scpslab.lab.services import Service, listens

if TYPE_CHECKING:
    from scpslab.lab.network import LabNetwork


@dataclass(frozen=True)
class Ready:
    """When a command is ready: it listens at a TCP port, has a UDP port, or a command ends with 0; without any of
    these, once it runs.
    """

    port: int | None = None
    udp: int | None = None
    command: str | None = None


class Shell(Service):
    """`sh -c COMMAND`, in a folder of the node."""

    what = "the command"
    look_again_ns: ClassVar[int | None] = SECOND_NS // 10

    def __init__(
        self,
        name: str,
        node: str,
        network: LabNetwork,
        loop: Loop,
        command: str,
        ready: Ready,
        on_end: Callable[[int], None] = lambda _code: None,
    ) -> None:
        super().__init__(name, node, network, loop, on_end)
        self.command, self.ready = command, ready
        self._question: subprocess.Popen[bytes] | None = None

    def argv(self) -> list[str]:
        """The shell and its command."""
        return ["sh", "-c", self.command]

    def launch(self) -> None:
        """Starts the program; all that it prints goes to its log, of which the end is kept."""
        self.log.write_bytes(b"")
        self.process = self._popen(subprocess.PIPE, subprocess.STDOUT)
        self.loop.on_data(self.process.stdout, self._note)
        self.loop.on_exit(self.process, self._ended)

    def is_ready(self) -> bool:
        """Whether its port is there, or its command has ended with 0; nothing is asked after it has ended itself."""
        if self.exit_code is not None:
            return False
        pid = self.network.pid(self.node) or 0
        if self.ready.port is not None:
            return listens(pid, "tcp", self.ready.port)
        if self.ready.udp is not None:
            return listens(pid, "udp", self.ready.udp)
        return self.ready.command is None or self._says_yes(self.ready.command)

    def _says_yes(self, command: str) -> bool:
        if self._question is None:
            nothing = subprocess.DEVNULL
            with self.network.owners.owning(self.name):
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
        with self.log.open("ab") as log:
            log.write(data)
            size = log.tell()
        # It is in the guest's memory.
        if size > 2 * LOG_BYTES:
            keep_end(self.log)
