"""An end of a transfer that the `scps` program is: its command line, and its report in the words of the lab's records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scpslab.lab.np_settings import end_file
from scpslab.lab.sp_settings import sp_path, why, write_sp
from scpslab.plan.stacks import ScpsEnd

from scpslab.kinds.workloads.bulk.plan import Bulk

if TYPE_CHECKING:
    from scpslab.lab.network import LabNetwork

SECOND_NS = 10**9
STATUS = {"complete": "completed", "failed": "incomplete"}
# What the report says of the protocol at work; the rest of it is in the record under the lab's own names, or depends on the machine.
KEPT = (
    *("preset", "segments_sent", "segments_received", "data_segments_sent", "pure_acks_sent", "retransmissions_by_cause", "superfluous_resends"),
    *("duplicate_segments", "out_of_order_segments", "probes_sent", "snacks_sent", "snacks_received", "compressed_sent"),
    *("srtt_s", "rtt_min_s", "rto_s", "cwnd_bytes", "holes", "negotiated"),
)


def receive_command(scps: str, end: ScpsEnd, spec: Bulk, timeout_s: float, trace: int | None) -> list[str]:
    """`scps recv` for a bulk transfer, saying when it listens and comparing what comes; `trace` is a descriptor to write one to."""
    own = ["--listen", f"{end.ip}:{spec.port}", "--announce", "--no-hash", "--expect-seed", str(spec.payload_seed)]
    return [scps, "recv", *own, *_options(end, timeout_s, trace)]


def send_command(scps: str, end: ScpsEnd, spec: Bulk, timeout_s: float, trace: int | None) -> list[str]:
    """`scps send` for a bulk transfer."""
    own = [
        "--local",
        end.ip,
        "--to",
        f"{spec.to_ip}:{spec.port}",
        "--bytes",
        str(spec.bytes_),
        "--no-hash",
        "--data-seed",
        str(spec.payload_seed),
    ]
    return [scps, "send", *own, *_options(end, timeout_s, trace)]


def _options(end: ScpsEnd, timeout_s: float, trace: int | None) -> list[str]:
    options = [*stack_options(end), "--timeout-s", f"{timeout_s:g}"]
    return options if trace is None else [*options, "--trace", str(Path("/dev/fd") / str(trace))]


def stack_options(end: ScpsEnd, start: int = 0) -> list[str]:
    """Options of SCPS-TP for an end; `start` counts its programs, each of which draws numbers and ports of its own."""
    options = ["--tun", end.device, "--seed", str(end.seed + start)]
    if end.np is not None:
        options += ["--network", "np", "--np", np_path(end)]
    if end.sp is not None:
        options += ["--sp", sp_path(end)]
    for key, value in end.settings.items():
        options += [f"--{key.replace('_', '-')}", str(value).lower() if isinstance(value, bool) else str(value)]
    return options


def np_path(end: ScpsEnd) -> str:
    """Where a program's node has its settings of SCPS-NP."""
    return f"/tmp/{end.device}-np.json"


def write_settings(network: LabNetwork, node: str, end: ScpsEnd | None) -> None:
    """Gives a node what a program there has to find: settings of SCPS-NP, settings and key of SCPS-SP, if it has any."""
    if end is None:
        return
    if end.np is not None:
        network.inside(node, np_path(end)).write_text(json.dumps(end_file(end.np), indent=1) + "\n")
    if end.sp is not None:
        write_sp(network, node, end, end.sp)


def as_record(report: dict[str, Any], wanted_bytes: int, *, is_np: bool) -> dict[str, Any]:
    """A report as the line that labtool writes for the same end: instants in ns of the wall clock (0: it never came)."""

    def instant(name: str) -> int:
        return 0 if report[name] is None else int(report["origin_ns"]) + round(report[name] * SECOND_NS)

    status = STATUS[report["status"]]
    shared = {
        "bytes": report["bytes"],
        "status": status,
        "error": why(report),
        "scps": {name: report[name] for name in (*KEPT, *(("signals",) if is_np else ()), *(("sp",) if "sp" in report else ()))},
    }
    if report["role"] == "send":
        return {
            "event": "sender",
            "connect_ns": instant("opened_s"),
            "connected_ns": instant("established_s"),
            "first_write_ns": instant("established_s"),
            "close_ns": instant("flushed_s"),
            "mss_bytes": report["negotiated"]["segment_bytes"],
            "segments": report["data_segments_sent"] + report["retransmissions"],
            "retransmits": report["retransmissions"],
            "rtos": report["rtos"],
            **shared,
        }
    return {
        "event": "receiver",
        "accept_ns": instant("opened_s"),
        "first_data_ns": instant("first_data_s"),
        "last_data_ns": instant("last_data_s") if report["bytes"] >= wanted_bytes else 0,
        "wrong_bytes": report["wrong_bytes"],
        **shared,
    }
