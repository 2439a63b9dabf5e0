"""Stack `scps`: SCPS-TP as the `scps` program speaks it (stack/).

Names and defaults are those of its presets (crates/scps-cli/src/settings.rs).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from scpslab.documents.parts import Part, key
from scpslab.documents.quantities import Duration, Name, PositiveDuration, Rate, Size
from scpslab.documents.yaml_lines import Problem
from scpslab.plan.np import Service, Suite
from scpslab.scenario.stacks.base import HostPart, Stack
from scpslab.scenario.stacks.node import HostSp, NodePlan

# One line a preset of the program. Its congestion control: without any, something else must set the pace. Its title.
PRESETS = {
    "fy97-rate": (
        "none",
        "SCPS-TP of the FY97 report: rate control alone, SNACK, buffers of 400,000 bytes; losses are corruption",
    ),
    "fy97-vegas": ("vegas", "SCPS-TP of the FY97 report with Vegas, whose slow start doubles every other round trip"),
    "nmsu-vj": ("vj", "SCPS-TP of the NMSU papers: Van Jacobson, buffers of 65,536 bytes; losses are congestion"),
    "nmsu-vegas": ("vegas", "SCPS-TP of the NMSU papers: Vegas, buffers of 65,536 bytes; losses are corruption"),
    "modern": (
        "vegas",
        "SCPS-TP of today: Vegas, SACK and long SNACK, large first window, buffers of 4 MiB; losses are corruption",
    ),
}
CONGESTION_OF = {name: congestion for name, (congestion, _) in PRESETS.items()}
if TYPE_CHECKING:
    ScpsPreset = str
else:
    ScpsPreset = Literal[tuple(PRESETS)]
DURATIONS = ("ack_delay", "ack_floor", "initial_rto", "rto_min", "rto_max")
SIZES = ("send_buffer", "receive_buffer")
PLAIN = (
    *(
        "congestion",
        "loss",
        "vegas_slow_start",
        "vegas_alpha",
        "vegas_beta",
        "vegas_gamma",
        "byte_counting",
        "limited_transmit",
    ),
    *(
        "timestamps",
        "window_scaling",
        "sack",
        "snack",
        "snack_long",
        "compression",
        "bets",
        "double_retransmission",
        "ack_every",
    ),
    *("rto_to_persist", "retransmissions_max"),
)
# The host passes packets between its links and the program's device, and is no router that sends redirects.
SYSCTLS = {
    "net.ipv4.ip_forward": "1",
    "net.ipv4.conf.all.send_redirects": "0",
    "net.ipv4.conf.default.send_redirects": "0",
}


class SpSettings(Part):
    """SCPS-SP between a host's transport and its network layer, IPv4 or SCPS-NP. Packets that do not verify are
    dropped; none leaves in clear.
    """

    suite: Suite = key("aes-256-gcm", says="Cipher and integrity check.", example="chacha20-poly1305")
    confidentiality: bool = key(
        True, says="Encrypt the data; without it they stay readable, and integrity is still checked.", example=False
    )
    authentication: bool = key(
        True,
        says="Carry the addresses of both ends inside, 8 bytes a packet; the integrity check covers them in any case.",
        example=False,
    )
    key_name: Name = key(
        "lab",
        says="Name of the key. Hosts that say the same name have the same key; others drop each other's packets.",
        example="other",
    )

    @property
    def services(self) -> tuple[Service, ...]:
        """In the order of the program's own default. There is none without integrity (scps-sp §6)."""
        found: list[Service] = ["confidentiality"] if self.confidentiality else []
        return (*found, *(("authentication",) if self.authentication else ()), "integrity")


class ScpsHost(HostPart):
    """A host with SCPS-TP (CCSDS 714.0-B). Missing keys come from the preset. The kernel carries ping and datagrams.

    Bulk transfers and the file protocol use SCPS-TP. So do unmodified programs (iperf3, FTP, commands of script and
    services), through the host's own gateway.
    """

    stack: Literal["scps"] = key(says="The stack: SCPS-TP.", example="scps")
    preset: ScpsPreset = key("modern", says="The preset that gives all other settings.", example="fy97-rate")
    congestion: Literal["none", "vj", "vegas"] | None = key(
        None, says="Congestion control: none (rate control only), Van Jacobson's, or Vegas.", example="vegas"
    )
    loss: Literal["congestion", "corruption"] | None = key(
        None,
        says="Meaning of a loss on the route: congestion (slow down) or corruption (resend at the same rate).",
        example="corruption",
    )
    rate: Rate | Literal["none"] | None = key(
        None,
        says="Rate control: rate of IP bytes. Default: none if there is congestion control, else the rate that fits "
        "the slowest hop.",
        example="2 Mbit/s",
    )
    vegas_slow_start: Literal["every-rtt", "every-other-rtt"] | None = key(
        None, says="Vegas: interval at which slow start doubles the window.", example="every-other-rtt"
    )
    vegas_alpha: int | None = key(
        None, says="Vegas: grow below this many segments in queues.", least=0, most=1000, example=1
    )
    vegas_beta: int | None = key(
        None, says="Vegas: shrink above this many segments in queues.", least=0, most=1000, example=3
    )
    vegas_gamma: int | None = key(
        None, says="Vegas: leave slow start above this many segments in queues.", least=0, most=1000, example=1
    )
    byte_counting: bool | None = key(
        None, says="Van Jacobson: grow by acknowledged bytes (RFC 3465), not by acknowledgements.", example=True
    )
    limited_transmit: bool | None = key(
        None,
        says="Send a new segment for each of the first two duplicate acknowledgements (RFC 3042); always on with SACK.",
        example=False,
    )
    initial_window: int | None = key(None, says="First congestion window, in segments.", least=1, most=1000, example=1)
    timestamps: bool | None = key(None, says="TCP timestamps (RFC 7323).", example=True)
    window_scaling: bool | None = key(None, says="Window scaling (RFC 7323).", example=True)
    sack: bool | None = key(None, says="Selective acknowledgements (RFC 2018).", example=False)
    snack: bool | None = key(None, says="Selective negative acknowledgements.", example=True)
    snack_long: bool | None = key(None, says="SNACK with a bit vector of further holes.", example=True)
    compression: bool | None = key(None, says="Header compression of SCPS-TP.", example=True)
    bets: bool | None = key(
        None, says="Best-effort transport service: leave gaps instead of resending for ever.", example=True
    )
    double_retransmission: bool | None = key(
        None, says="Resend every SNACKed segment twice, as FY97's program did.", example=False
    )
    ack_every: int | None = key(
        None, says="Acknowledge every n-th segment; 0: by the timer only.", least=0, most=1000, example=2
    )
    ack_delay: PositiveDuration | None = key(
        None, says="Delayed-acknowledgement timer, in whole milliseconds.", example="200 ms"
    )
    ack_floor: Duration | None = key(
        None,
        says="Least time between acknowledgements of data in order, in whole milliseconds; 0 ms: none.",
        example="100 ms",
    )
    initial_rto: PositiveDuration | None = key(
        None, says="Retransmission timeout before the first measurement, in whole milliseconds.", example="6 s"
    )
    rto_min: PositiveDuration | None = key(
        None, says="Smallest retransmission timeout, in whole milliseconds.", example="1 s"
    )
    rto_max: PositiveDuration | None = key(
        None, says="Largest retransmission timeout, in whole milliseconds.", example="60 s"
    )
    rto_to_persist: int | None = key(
        None,
        says="Number of timeouts after which the route counts as unavailable; 0: never.",
        least=0,
        most=1000,
        example=3,
    )
    retransmissions_max: int | None = key(
        None,
        says="Number of timeouts after which a connection is given up, unless the route counts as unavailable before.",
        least=0,
        most=1000,
        example=5,
    )
    network: Literal["ip", "np"] = key(
        "ip",
        says="The layer beneath SCPS-TP: IPv4, or SCPS-NP (in IP as far as a router of SCPS-NP, or as the other host).",
        example="np",
    )
    default_precedence: int = key(
        0,
        says="SCPS-NP: precedence of packets whose connection names none; 15 leaves first and is discarded last.",
        least=0,
        most=15,
        example=3,
    )
    sp: SpSettings | None = key(
        None,
        says="SCPS-SP: protects the segments of SCPS-TP, with a key that the lab makes from the cell's seed. "
        "Default: no protection.",
        example={"suite": "chacha20-poly1305"},
    )
    send_buffer: Size | None = key(None, says="Send buffer.", example="400000 B")
    receive_buffer: Size | None = key(None, says="Receive buffer.", example="400000 B")


def scps_node(host: ScpsHost) -> NodePlan:
    """What a plan says of the host. `scps` holds the program's settings file (`scps send --config`)."""
    settings: dict[str, Any] = {"preset": host.preset}
    settings |= {name: value for name in PLAIN if (value := getattr(host, name)) is not None}
    settings |= {
        f"{name}_ms": max(1, _ms(value)) if _ms(value) or name != "ack_floor" else 0
        for name in DURATIONS
        if (value := getattr(host, name)) is not None
    }
    settings |= {name: value for name in SIZES if (value := getattr(host, name)) is not None}
    if host.initial_window is not None:
        settings["initial_window"] = str(host.initial_window)
    if host.rate is not None:
        settings["rate"] = "none" if host.rate == "none" else str(host.rate)
    unpaced = (host.congestion or CONGESTION_OF[host.preset]) == "none" and host.rate is None
    return NodePlan(
        stack="scps",
        sysctls=dict(SYSCTLS),
        timestamps=host.timestamps is not False,
        scps=settings,
        paced_by_slowest_hop=unpaced,
        np_precedence=host.default_precedence if host.network == "np" else None,
        sp=HostSp(host.sp.suite, host.sp.services, host.sp.key_name) if host.sp is not None else None,
    )


def problems(host: ScpsHost, _containers: str) -> Iterator[Problem]:
    """What does not fit a host of the stack."""
    if host.default_precedence and host.network != "np":
        yield (
            ("default_precedence",),
            (
                f"found {host.default_precedence} with network ip, which carries no precedence; "
                "expected network np. Add network: np."
            ),
        )


def settled(host: ScpsHost) -> dict[str, Any]:
    """The host's congestion control; the other settings of a preset are known to the program alone."""
    return {"congestion": host.congestion or CONGESTION_OF[host.preset]}


KIND = Stack(
    ScpsHost,
    scps_node,
    image="scps-host",
    makes_device=True,
    presets={name: title for name, (_, title) in PRESETS.items()},
    problems=problems,
    settled=settled,
)


def _ms(duration_ns: int) -> int:
    return duration_ns // 10**6
