"""Stack `scps-ri`: SCPS-TP as MITRE's reference implementation speaks it, in the image that users build from their copy of its source (images/scps-ri)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from scpslab import units
from scpslab.documents.parts import key
from scpslab.documents.quantities import Duration, PositiveDuration, Rate, Size
from scpslab.presets import PRESETS
from scpslab.stacks.base import HostPart, Problem, Stack
from scpslab.stacks.kernel import sysctls
from scpslab.stacks.node import NodePlan, OwnImage
from scpslab.version import version

MEMORY_BYTES = 256 << 20
MILLISECOND_NS = 10**6
# Keys by how a value becomes a word of images/scps-ri/README.md. The words are the keys, with "-" for "_".
PLAIN = ("fp", "program", "transport", "driver", "congestion", "loss", "snack", "timestamps", "compression", "bets", "nodelay", "ack_every")
DURATIONS = ("ack_delay", "ack_floor", "snack_delay", "rto_min")
SIZES = ("left", "send_buffer", "receive_buffer", "mtu", "mss")


class ScpsRiHost(HostPart):
    """A host with MITRE's reference implementation ([images/scps-ri](../images/scps-ri/README.md)). Needs `containers: docker`; supports only `endpoint`."""

    stack: Literal["scps-ri"] = key(says="The stack: SCPS-TP of the reference implementation.", example="scps-ri")
    fp: Literal["put", "get"] | None = key(
        None, says="Transfers are files of the file protocol; put: its client is at the sender, get: at the receiver. Both ends need the same.", example="put"
    )
    program: Literal["ri", "scps"] | None = key(None, says="Whose file protocol: the reference implementation's (if missing) or ours.", example="scps")
    transport: Literal["tp", "tcp"] | None = key(None, says="What carries the file protocol: SCPS-TP (if missing) or the kernel's TCP.", example="tcp")
    left: Size | None = key(None, says="Bytes of the file that are at the receiver already; the client goes on from there.", example="20 kB")
    driver: Literal["udp", "raw"] = key("udp", says="What carries packets: UDP, or IP with the protocol numbers 105 and 106.", example="raw")
    congestion: Literal["none", "vj", "vegas"] | None = key(
        None, says="Congestion control: none (rate control only), Van Jacobson's, or Vegas.", example="none"
    )
    loss: Literal["congestion", "corruption"] | None = key(None, says="Meaning of a loss on the route.", example="corruption")
    rate: Rate | None = key(None, says="Rate control: rate of IP bytes; 2 Mbit/s if missing.", example="2 Mbit/s")
    timestamps: bool | None = key(None, says="TCP timestamps (RFC 7323).", example=True)
    snack: bool | None = key(None, says="Selective negative acknowledgements.", example=True)
    compression: bool | None = key(None, says="Header compression of SCPS-TP.", example=True)
    bets: bool | None = key(None, says="Best-effort transport service: leave gaps instead of resending for ever.", example=True)
    nodelay: bool | None = key(None, says="Send small segments at once.", example=True)
    ack_every: int | None = key(None, says="Acknowledge every n-th segment; 0: by the timer only.", least=0, most=1000, example=2)
    ack_delay: PositiveDuration | None = key(None, says="Delayed-acknowledgement timer, in whole milliseconds.", example="200 ms")
    ack_floor: Duration | None = key(None, says="Least time between acknowledgements of data in order, in whole milliseconds.", example="100 ms")
    snack_delay: Duration | None = key(None, says="Least time between a loss and its SNACK, in whole milliseconds.", example="50 ms")
    rto_min: PositiveDuration | None = key(None, says="Smallest retransmission timeout, in whole milliseconds.", example="1 s")
    send_buffer: Size | None = key(None, says="Send buffer.", example="400000 B")
    receive_buffer: Size | None = key(None, says="Receive buffer.", example="400000 B")
    mtu: Size | None = key(None, says="Largest packet; with driver udp, the headers outside it are included.", example="1452 B")
    mss: Size | None = key(
        None, says="Largest segment, options included. The implementation takes it and goes by its route all the same: use mtu.", example="512 B"
    )


def options(host: ScpsRiHost) -> str:
    """The host's settings as words for its image. Protocol 106 is the only one it has; the word lets `scps` take the same options."""
    values = {name: value for name in PLAIN if (value := getattr(host, name)) is not None}
    values |= {f"{name}_ms": units.parse("duration", value) // MILLISECOND_NS for name in DURATIONS if (value := getattr(host, name)) is not None}
    values |= {name: units.parse("size", value) for name in SIZES if (value := getattr(host, name)) is not None}
    if host.rate is not None:
        values["rate"] = units.parse("rate", host.rate)
    words = (f"--{name.replace('_', '-')} {str(value).lower()}" for name, value in values.items())
    return " ".join(("--protocol 106", *words))


def scps_ri_node(host: ScpsRiHost) -> NodePlan:
    """What a plan says of the host: the image, and its settings as words."""
    return NodePlan(
        stack="scps-ri",
        sysctls=sysctls(PRESETS["modern"]),
        timestamps=host.timestamps is not False,
        image=OwnImage(f"scpslab/scps-ri:{version()}", MEMORY_BYTES, device=False, options=options(host)),
    )


def scps_ri_problems(_host: ScpsRiHost, containers: str) -> Iterator[Problem]:
    """The implementation comes in an image only."""
    if containers != "docker":
        yield ("stack",), "found stack scps-ri with nodes that are processes; expected containers. Add containers: docker."


KIND = Stack(ScpsRiHost, scps_ri_node, problems=scps_ri_problems)
