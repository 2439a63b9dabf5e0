"""Stack `kernel`: the kernel's own TCP. Settings come from a preset; what the scenario says goes on top.

Names are those of Linux 6.12.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from scpslab.documents.parts import OneOf, key
from scpslab.documents.quantities import PositiveMilliseconds, Size, Window
from scpslab.documents.yaml_lines import own
from scpslab.plan.routes import RouteOptions
from scpslab.scenario.stacks import HostPart, NodePlan

# What the lab kernel is built with (images/lab-kernel/config.fragment).
CONTROLS = (
    *("bbr", "bic", "cdg", "cubic", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv", "reno", "scalable"),
    *("vegas", "veno", "westwood", "yeah"),
)
Control = Annotated[str, OneOf(CONTROLS)]
# tcp_rmem and tcp_wmem are triples: least, at first, most. The most suits a geostationary hop at 240 Mbit/s, where the
# kernel's own suits a LAN.
LEAST_BUFFER, FIRST_RECEIVE, FIRST_SEND, MOST_BUFFER = 4096, 131_072, 65_536, 16_777_216


@dataclass(frozen=True, kw_only=True)
class KernelSettings:
    """A host's TCP; as it is here, that of the kernel. None: the kernel's own choice.

    Sizes in bytes; `mss` and the initial windows as on a route (ip-route(8)).
    """

    title: str
    congestion_control: str = "cubic"
    timestamps: bool = True
    sack: bool = True
    window_scaling: bool = True
    # The kernel's own 2 answers who asks; nobody here asks, and a scenario that wants ECN says so.
    ecn: bool = False
    rack: bool = True
    tail_loss_probe: bool = True
    f_rto: bool = True
    autotuning: bool = True
    # Routes without a word on it get 10 segments (RFC 6928).
    initial_window: int | None = None
    initial_receive_window: int | None = None
    mss: int | None = None
    rto_min_ms: int | None = None
    send_buffer: int | None = None
    receive_buffer: int | None = None
    delayed_ack: bool = False
    quick_ack: bool = False


def _presets() -> dict[str, KernelSettings]:
    """Those of presets.yaml by name."""
    found: dict[str, KernelSettings] = {}
    for name, said in own(Path(__file__).with_name("presets.yaml")).items():
        like = said.pop("like", None)
        found[name] = replace(found[like], **said) if like else KernelSettings(**said)
    return {name: preset for name, preset in found.items() if not name.startswith("_")}


PRESETS = _presets()


class KernelHost(HostPart, kind="kernel"):
    """A host with the kernel's TCP. Missing keys come from the preset.

    Attributes:
        stack: The stack: the kernel's own TCP.
        preset: The preset that gives all other settings.
        congestion_control: Congestion control.
        timestamps: TCP timestamps (RFC 7323): 12 bytes in every segment.
        sack: Selective acknowledgements (RFC 2018), and with them DSACK (RFC 2883).
        window_scaling: TCP window scaling (RFC 7323): windows above 65,535 bytes.
        ecn: Explicit congestion notification (RFC 3168).
        initial_window: Initial congestion window, in segments.
        initial_receive_window: First advertised window, in segments.
        mss: Largest segment that the host announces, options included.
        rto_min: Smallest retransmission timeout, in whole milliseconds; the kernel's own is 200 ms.
        send_buffer: Most data that a bulk transfer has in flight. Default: the kernel's autotuning.
        receive_buffer: Largest window that a bulk transfer advertises. Default: the kernel's autotuning.
        quick_ack: Acknowledge every segment at once; otherwise the kernel acknowledges every second segment of a
            stream.
        delayed_ack: Delay acknowledgements of bulk transfers from the first segment on; otherwise the kernel
            acknowledges the first segments at once.
    """

    presets: ClassVar = {name: preset.title for name, preset in PRESETS.items()}
    controls: ClassVar = CONTROLS

    stack: Literal["kernel"] = key("kernel", example="kernel")
    preset: Annotated[str, OneOf(PRESETS)] = key("modern", example="fy97-reno")
    congestion_control: Control | None = key(None, example="bbr")
    timestamps: bool | None = key(None, example=True)
    sack: bool | None = key(None, example=False)
    window_scaling: bool | None = key(None, example=True)
    ecn: bool | None = key(None, example=False)
    initial_window: Window | None = key(None, example=1)
    initial_receive_window: Window | None = key(None, example=10)
    mss: Size | None = key(None, example="1412 B")
    rto_min: PositiveMilliseconds | None = key(None, example="1 s")
    send_buffer: Size | None = key(None, example="168000 B")
    receive_buffer: Size | None = key(None, example="200200 B")
    quick_ack: bool | None = key(None, example=True)
    delayed_ack: bool | None = key(None, example=True)

    @property
    def settings(self) -> KernelSettings:
        """The preset with the scenario's own words on top."""
        preset = PRESETS[self.preset]
        names = (field.name for field in fields(preset) if field.name in type(self).model_fields)
        own = {name: value for name in names if (value := getattr(self, name)) is not None}
        if self.rto_min is not None:
            own["rto_min_ms"] = self.rto_min // 10**6
        return replace(preset, **own)

    def plan(self) -> NodePlan:
        """What a plan says of the host."""
        settings = self.settings
        return NodePlan(
            stack="kernel",
            sysctls=sysctls(settings),
            timestamps=settings.timestamps,
            route=RouteOptions(
                initcwnd=settings.initial_window,
                initrwnd=settings.initial_receive_window,
                advmss=settings.mss,
                rto_min_ms=settings.rto_min_ms,
                quickack=1 if settings.quick_ack else None,
            ),
            send_window_bytes=settings.send_buffer,
            receive_window_bytes=settings.receive_buffer,
            delayed_ack=settings.delayed_ack,
        )

    def settled(self) -> Mapping[str, object]:
        """All settings."""
        return {key: value for key, value in asdict(self.settings).items() if key != "title"}


def sysctls(settings: KernelSettings) -> dict[str, str]:
    """Kernel settings of the host's network namespace."""
    # Half of a receive buffer counts as window (tcp_adv_win_scale 1); without autotuning it has to be right from the
    # start.
    first_receive = (
        FIRST_RECEIVE if settings.autotuning or settings.receive_buffer is None else 2 * settings.receive_buffer
    )
    return {
        "net.ipv4.tcp_congestion_control": settings.congestion_control,
        "net.ipv4.tcp_sack": _flag(settings.sack),
        # DSACK reports duplicates to a sender that would then undo window cuts; without SACK there is none.
        "net.ipv4.tcp_dsack": _flag(settings.sack),
        # 1 with random offsets, 2 without: offsets are seeded in the lab, either is reproducible.
        "net.ipv4.tcp_timestamps": _flag(settings.timestamps),
        "net.ipv4.tcp_window_scaling": _flag(settings.window_scaling),
        # 1 asks for ECN; the kernel's own 2 would answer a peer that asks.
        "net.ipv4.tcp_ecn": _flag(settings.ecn),
        # What one transfer learned must not help the next: repeats are independent.
        "net.ipv4.tcp_no_metrics_save": "1",
        "net.ipv4.tcp_rmem": f"{LEAST_BUFFER} {first_receive} {max(MOST_BUFFER, first_receive)}",
        "net.ipv4.tcp_wmem": f"{LEAST_BUFFER} {FIRST_SEND} {MOST_BUFFER}",
        # Receive buffers that grow with the path; off where a fixed window is what is studied.
        "net.ipv4.tcp_moderate_rcvbuf": _flag(settings.autotuning),
        # RACK (RFC 8985): loss by time. Off means duplicate acknowledgements decide, as before 2017.
        "net.ipv4.tcp_recovery": "1" if settings.rack else "0",
        # Tail loss probes (RFC 8985 §7): 3 sends one after two round trips of silence, 0 leaves the end of a transfer
        # to the timeout.
        "net.ipv4.tcp_early_retrans": "3" if settings.tail_loss_probe else "0",
        # F-RTO (RFC 5682): 2 looks for timeouts that were spurious, 0 believes every one.
        "net.ipv4.tcp_frto": "2" if settings.f_rto else "0",
    }


def _flag(value: bool) -> str:
    return "1" if value else "0"
