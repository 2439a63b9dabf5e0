"""Kind `command`: a third party's service."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from scpslab.core.problems import UnfitError
from scpslab.documents.parts import key
from scpslab.documents.quantities import Name, Port, PositiveDuration
from scpslab.scenario.services import Service


class CommandService(Service, kind="command"):
    """A command that runs in a node's shell until the cell ends.

    If it ends before, the cell has failed. What it prints is in the logs (the last MiB).

    Attributes:
        kind: The kind of service.
        name: Name; its log is logs/NAME-NODE.log.
        node: Host or router.
        command: The command; sh runs it.
        ready_port: It is ready when something in the node accepts TCP connections at this port.
        ready_command: It is ready when this command, run in the node again and again, ends with 0. Default: at once,
            unless ready_port is given.
        timeout: Time in which it has to be ready; a cell whose service is not has failed.
    """

    runs_commands: ClassVar = True

    kind: Literal["command"] = key(example="command")
    name: Name = key(example="web")
    node: Name = key(example="ws2")
    command: Annotated[str, Field(min_length=1)] = key(example="python3 -m http.server 8080")
    ready_port: Port | None = key(None, example=8080)
    ready_command: Annotated[str, Field(min_length=1)] | None = key(None, example="test -e /tmp/ready")
    timeout: PositiveDuration = key("30 s", example="60 s")

    @model_validator(mode="after")
    def _asks_once(self) -> Self:
        if self.ready_port is not None and self.ready_command is not None:
            raise UnfitError("ready_port and ready_command", "one of them")
        return self

    @property
    def listens_at(self) -> int | None:
        """Where it is ready."""
        return self.ready_port
