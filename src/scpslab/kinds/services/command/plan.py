"""A third party's service: a command."""

from collections.abc import Iterator
from typing import Literal

from scpslab.core.problems import Problem
from scpslab.plan.network import NetworkPlan
from scpslab.plan.services import Daemon
from scpslab.plan.values import Period, PlainText, Port


class CommandService(Daemon, kind="command"):
    """A command that a node's shell runs until the cell ends.

    It is ready when it listens at `ready_port`, or `ready_command` ends with 0.

    Without either it is ready once it runs.
    """

    kind: Literal["command"] = "command"
    command: PlainText
    ready_port: Port | None = None
    ready_command: PlainText | None = None
    timeout_ns: Period

    @property
    def listens_at(self) -> int | None:
        """Where it is ready."""
        return self.ready_port

    def problems(self, network: NetworkPlan) -> Iterator[Problem]:
        """Two questions."""
        if self.ready_port is not None and self.ready_command is not None:
            yield Problem(("ready_command",), "it beside ready_port", "one of them")
