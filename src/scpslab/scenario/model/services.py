"""Services: daemons on nodes, there before the traffic begins."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scpslab.documents.parts import Part, key
from scpslab.documents.quantities import Name, PositiveDuration, Rate, Size


class CommandService(Part):
    """A command that runs in a node's shell until the cell ends. If it ends before, the cell has failed. What it prints is in the logs (the first MiB)."""

    kind: Literal["command"] = key(says="The kind of service.", example="command")
    name: Name = key(says="Name; its log is logs/NAME-NODE.log.", example="web")
    node: Name = key(says="Host or router.", example="ws2")
    command: Annotated[str, Field(min_length=1)] = key(says="The command; sh runs it.", example="python3 -m http.server 8080")
    ready_port: int | None = key(None, says="It is ready when something in the node accepts TCP connections at this port.", least=1, most=65_535, example=8080)
    ready_command: Annotated[str, Field(min_length=1)] | None = key(
        None,
        says="It is ready when this command, run in the node again and again, ends with 0. Default: at once, unless ready_port is given.",
        example="test -e /tmp/ready",
    )
    patience: PositiveDuration = key("30 s", says="Time in which it has to be ready; a cell whose service is not has failed.", example="60 s")

    @model_validator(mode="after")
    def _asks_once(self) -> Self:
        if self.ready_port is not None and self.ready_command is not None:
            raise ValueError("found ready_port and ready_command; expected one of them")
        return self


class GatewayService(Part):
    """A gateway on a router (`scps gateway`): connections of unmodified programs are TCP on its LAN and SCPS-TP to the gateway at the other end, in UDP.

    What is not TCP passes. The routes to the far networks must be shorter prefixes than `far`, or default routes: those of `far` lead into the gateway.
    """

    kind: Literal["gateway"] = key(says="The kind of service.", example="gateway")
    name: Name = key(says="Name; its account is records/NAME.jsonl, its log logs/NAME-NODE.log.", example="near")
    node: Name = key(says="Router.", example="g1")
    peer: str = key(says="Address of the gateway at the other end.", example="10.9.0.2")
    far: tuple[str, ...] = key(says="Networks behind it.", example=["10.2.0.0/24"])
    rate: Rate | Literal["none"] = key(says="Rate of the link, all headers included; none for no rate control.", example="2 Mbit/s")
    rtt: PositiveDuration | None = key(
        None,
        says="Round-trip time of the link; with the rate it gives the buffers. Default: the delays of the link to `peer`, both ways.",
        example="530 ms",
    )
    mtu: Size = key("1500 B", says="MTU of the link.", example="1500 B")
    congestion: Literal["none", "vj", "vegas"] = key("none", says="Congestion control on the link.", example="vegas")
    loss: Literal["congestion", "corruption"] = key("corruption", says="The meaning of a loss on the link.", example="congestion")
    buffer: Size | None = key(None, says="Each of a connection's four buffers. Default: twice the bandwidth-delay product, at least 256 KiB.", example="1 MB")
    set_up: Literal["connect-first", "accept-first", "early"] = key(
        "connect-first", says="When a client is answered: after the server, at once, or at once with a closed window.", example="early"
    )
    patience: PositiveDuration = key("30 s", says="Time in which it has to be ready.", example="60 s")


Service = Annotated[CommandService | GatewayService, Field(discriminator="kind")]
