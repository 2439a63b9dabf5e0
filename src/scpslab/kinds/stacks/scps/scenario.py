"""Stack `scps`: SCPS-TP as the `scps` program speaks it (stack/).

Names and defaults are those of its presets (crates/scps-cli/src/settings.rs).
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from scpslab.core.problems import Problem
from scpslab.documents.parts import OneOf, key
from scpslab.documents.quantities import (
    Milliseconds,
    PositiveMilliseconds,
    Precedence,
    Quantity,
    Rate,
    Size,
    UpToThousand,
    Window,
)
from scpslab.plan.values import AxisValue
from scpslab.scenario.stacks import FORWARDING, CarefulResume, HostPart, NodePlan, SpSettings

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
# Keys that the program's settings do not have, or have in other words.
NOT_PLAIN = ("stack", "preset", "rate", "initial_window", "careful_resume", "network", "default_precedence", "sp")
# The program's words for keys.
PROGRAM_WORDS = {"congestion_control": "congestion", "loss_response": "loss"}


class ScpsHost(HostPart, kind="scps"):
    """A host with SCPS-TP (CCSDS 714.0-B). Missing keys come from the preset. The kernel carries ping and datagrams.

    Bulk transfers and the file protocol use SCPS-TP. So do unmodified programs (iperf3, FTP, commands of events and
    services), through the host's own gateway.

    Attributes:
        stack: The stack: SCPS-TP.
        preset: The preset that gives all other settings.
        congestion_control: Congestion control: none (rate control only), Van Jacobson's, or Vegas.
        loss_response: Meaning of a loss on the route: congestion (slow down) or corruption (resend at the same rate).
        rate: Rate control: rate of IP bytes. Default: the rate that fits the slowest hop without congestion control,
            else the program's 2 Mbit/s. `none`: no rate control.
        vegas_slow_start: Vegas: interval at which slow start doubles the window.
        vegas_alpha: Vegas: grow below this many segments in queues.
        vegas_beta: Vegas: shrink above this many segments in queues.
        vegas_gamma: Vegas: leave slow start above this many segments in queues.
        byte_counting: Van Jacobson: grow by acknowledged bytes (RFC 3465), not by acknowledgements.
        limited_transmit: Send a new segment for each of the first two duplicate acknowledgements (RFC 3042); always on
            with SACK.
        initial_window: First congestion window, in segments.
        careful_resume: Careful Resume (RFC 9959) from a known path, with congestion control. Default: off.
        timestamps: TCP timestamps (RFC 7323).
        window_scaling: Window scaling (RFC 7323).
        sack: Selective acknowledgements (RFC 2018).
        snack: Selective negative acknowledgements.
        snack_long: SNACK with a bit vector of further holes.
        compression: Header compression of SCPS-TP.
        bets: Best-effort transport service: leave gaps instead of resending for ever.
        double_retransmission: Resend every SNACKed segment twice, as FY97's program did.
        ack_every: Acknowledge every n-th segment; 0: by the timer only.
        ack_delay: Delayed-acknowledgement timer, in whole milliseconds.
        ack_floor: Least time between acknowledgements of data in order, in whole milliseconds; 0 ms: none.
        initial_rto: Retransmission timeout before the first measurement, in whole milliseconds.
        rto_min: Smallest retransmission timeout, in whole milliseconds.
        rto_max: Largest retransmission timeout, in whole milliseconds.
        rto_to_persist: Number of timeouts after which the route counts as unavailable; 0: never.
        retransmissions_max: Number of timeouts after which a connection is given up, unless the route counts as
            unavailable before.
        network: The layer beneath SCPS-TP: IPv4, or SCPS-NP (in IP as far as a router of SCPS-NP, or as the other
            host).
        default_precedence: SCPS-NP: precedence of packets whose connection names none; 15 leaves first and is discarded
            last.
        sp: SCPS-SP: protects the segments of SCPS-TP, with a key that the lab makes from the cell's seed. Default: no
            protection.
        send_buffer: Send buffer.
        receive_buffer: Receive buffer.
    """

    image_folder: ClassVar = "scps-host"
    makes_device: ClassVar = True
    presets: ClassVar = {name: title for name, (_, title) in PRESETS.items()}
    control_of: ClassVar = {name: congestion for name, (congestion, _) in PRESETS.items()}

    stack: Literal["scps"] = key(example="scps")
    preset: Annotated[str, OneOf(PRESETS)] = key("modern", example="fy97-rate")
    congestion_control: Literal["none", "vj", "vegas"] | None = key(None, example="vegas")
    loss_response: Literal["congestion", "corruption"] | None = key(None, example="corruption")
    rate: Rate | Literal["none"] | None = key(None, example="2 Mbit/s")
    vegas_slow_start: Literal["every-rtt", "every-other-rtt"] | None = key(None, example="every-other-rtt")
    vegas_alpha: UpToThousand | None = key(None, example=1)
    vegas_beta: UpToThousand | None = key(None, example=3)
    vegas_gamma: UpToThousand | None = key(None, example=1)
    byte_counting: bool | None = key(None, example=True)
    limited_transmit: bool | None = key(None, example=False)
    initial_window: Window | None = key(None, example=1)
    careful_resume: CarefulResume | None = key(None, example={"window": "750 kB", "rtt": "600 ms"})
    timestamps: bool | None = key(None, example=True)
    window_scaling: bool | None = key(None, example=True)
    sack: bool | None = key(None, example=False)
    snack: bool | None = key(None, example=True)
    snack_long: bool | None = key(None, example=True)
    compression: bool | None = key(None, example=True)
    bets: bool | None = key(None, example=True)
    double_retransmission: bool | None = key(None, example=False)
    ack_every: UpToThousand | None = key(None, example=2)
    ack_delay: PositiveMilliseconds | None = key(None, example="200 ms")
    ack_floor: Milliseconds | None = key(None, example="100 ms")
    initial_rto: PositiveMilliseconds | None = key(None, example="6 s")
    rto_min: PositiveMilliseconds | None = key(None, example="1 s")
    rto_max: PositiveMilliseconds | None = key(None, example="60 s")
    rto_to_persist: UpToThousand | None = key(None, example=3)
    retransmissions_max: UpToThousand | None = key(None, example=5)
    network: Literal["ip", "np"] = key("ip", example="np")
    default_precedence: Precedence = key(0, example=3)
    sp: SpSettings | None = key(None, example={"suite": "chacha20-poly1305"})
    send_buffer: Size | None = key(None, example="400000 B")
    receive_buffer: Size | None = key(None, example="400000 B")

    @property
    def program(self) -> dict[str, AxisValue]:
        """The program's settings file (`scps send --config`)."""
        names = (name for name in type(self).model_fields if name not in NOT_PLAIN)
        own = {PROGRAM_WORDS.get(name, name): value for name in names if (value := getattr(self, name)) is not None}
        times = {f"{name}_ms": value // 10**6 for name, value in own.items() if isinstance(value, Milliseconds)}
        sizes = {name: value for name, value in own.items() if isinstance(value, Size)}
        plain = {name: value for name, value in own.items() if not isinstance(value, Quantity)}
        settings: dict[str, AxisValue] = {"preset": self.preset, **plain, **times, **sizes}
        if self.initial_window is not None:
            settings["initial_window"] = str(self.initial_window)
        if self.careful_resume is not None:
            settings |= self.careful_resume.program
        if self.rate is not None:
            settings["rate"] = "none" if self.rate == "none" else str(self.rate)
        return settings

    def plan(self) -> NodePlan:
        """What a plan says of the host."""
        return NodePlan(
            stack="scps",
            sysctls=dict(FORWARDING),
            timestamps=self.timestamps is not False,
            scps=self.program,
            paced_by_slowest_hop=self.settled()["congestion_control"] == "none" and self.rate is None,
            np_precedence=self.default_precedence if self.network == "np" else None,
            sp=self.sp,
        )

    def problems(self) -> Iterator[Problem]:
        """A precedence that no packet can carry."""
        if self.default_precedence and self.network != "np":
            found = f"{self.default_precedence} with network ip, which carries no precedence"
            yield Problem(("default_precedence",), found, "network np", "Add network: np.")
        if self.careful_resume is not None and self.settled()["congestion_control"] == "none":
            found, expected = "it without congestion control, where no window grows", "congestion_control vj or vegas"
            yield Problem(("careful_resume",), found, expected, "Add congestion_control, or leave careful_resume out.")

    def settled(self) -> Mapping[str, object]:
        """The host's congestion control; the other settings of a preset are known to the program alone."""
        return {"congestion_control": self.congestion_control or self.control_of[self.preset]}
