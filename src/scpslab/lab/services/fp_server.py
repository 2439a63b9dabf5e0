"""`scps fpd` on a node: the server of SCPS-FP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from scpslab.lab.loop import Loop
from scpslab.lab.services.base import Service

if TYPE_CHECKING:
    from scpslab.lab.network import LabNetwork

READY = "ready"


class FpServer(Service):
    """It serves `FOLDER/files` of its node; `options` are those of its transport."""

    what = "scps fpd"

    def __init__(
        self,
        name: str,
        node: str,
        network: LabNetwork,
        loop: Loop,
        *,
        folder: str,
        ip: str,
        port: int,
        options: Sequence[str],
        on_end: Callable[[int], None],
    ) -> None:
        """`on_end` gets the exit code."""
        super().__init__(name, node, network, loop, on_end)
        self.folder, self.ip, self.port, self.options = folder, ip, port, options

    def prepare(self) -> None:
        """Takes away what an earlier server said."""
        self.network.inside(self.node, f"{self.folder}/{READY}").unlink(missing_ok=True)

    def argv(self) -> list[str]:
        """The server and its options."""
        argv = [self.network.node(self.node).program("scps"), "fpd", "--listen", self.ip, "--port", str(self.port), "--open", f"{self.folder}/files"]
        return [*argv, "--ready-file", f"{self.folder}/{READY}", *self.options]

    def is_ready(self) -> bool:
        """Whether it has said that it serves."""
        return self.network.inside(self.node, f"{self.folder}/{READY}").exists()
