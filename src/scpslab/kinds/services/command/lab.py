"""A third party's service: a command in a node's shell, ready when it listens at a port or a command of the user's says
so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scpslab.lab.loop import Loop
from scpslab.lab.shell import Ready, Shell

from scpslab.kinds.services.command.plan import CommandService

if TYPE_CHECKING:
    from scpslab.lab.network import LabNetwork


class Command(Shell, kind="command"):
    """The command of a plan's service."""

    def __init__(self, plan: CommandService, network: LabNetwork, loop: Loop) -> None:
        ready = Ready(port=plan.ready_port, command=plan.ready_command)
        super().__init__(plan.name, plan.node, network, loop, plan.command, ready)
        self.start_limit_ns = plan.timeout_ns
