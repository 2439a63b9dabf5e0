"""Services: daemons of nodes that a cell's workloads and commands use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from scpslab.plan.schema import Kinds
from scpslab.plan.values import Name, Period, PlainText, Port


@dataclass(frozen=True, kw_only=True)
class CommandService:
    """A command that a node's shell runs until the cell ends. It is ready when it listens at `ready_port`, or `ready_command` ends with 0.

    Without either it is ready once it runs.
    """

    kind: Literal["command"] = "command"
    name: Name
    node: Name
    command: PlainText
    ready_port: Port | None = None
    ready_command: PlainText | None = None
    patience_ns: Period


SERVICES: dict[str, type] = {"command": CommandService}
Service = Annotated[CommandService, Kinds("kind", SERVICES)]
