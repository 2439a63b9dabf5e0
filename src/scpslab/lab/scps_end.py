"""What the `scps` program gets in a node, and what it says: command lines, settings files, reports as the lab's
records.

Settings of SCPS-NP are those of `scps router FILE` and `--np FILE` (stack/README.md). SCPS-SP has settings, a key and
the record of the key's sequence numbers in the node's own /tmp. A key is made from a seed of the plan, so that a cell
gives the same packets again: it protects nothing that somebody with the plan must not read.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from scpslab.core.names import file_name
from scpslab.core.strict_json import JsonObject, number, section, text, whole
from scpslab.lab.loop import SECOND_NS
from scpslab.plan.np import NpEnd, NpHop, NpHost, SpEnd
from scpslab.plan.stacks import ScpsEnd

if TYPE_CHECKING:
    from scpslab.lab.network import LabNetwork


# A program's own files in its node: its states (scps-io, states.rs), and its settings of SCPS-NP and SCPS-SP.
FOLDER, STATES_SUFFIX, NP_SUFFIX, SP_SUFFIX = "/tmp", ".states", "-np.json", "-sp.json"
STATUS = {"complete": "completed", "failed": "incomplete"}
# What the report says of the protocol at work; the rest of it is in the record under the lab's own names, or depends on
# the machine.
KEPT = (
    *("preset", "segments_sent", "segments_received", "data_segments_sent", "pure_acks_sent"),
    *("retransmissions_by_cause", "superfluous_resends", "duplicate_segments", "out_of_order_segments"),
    *("probes_sent", "snacks_sent", "snacks_received", "compressed_sent"),
    *("srtt_s", "rtt_min_s", "rto_s", "cwnd_bytes", "holes", "negotiated"),
)


def options(end: ScpsEnd, timeout_s: float, trace: int | None) -> list[str]:
    """Options of a transfer at an end; `trace` is a descriptor to write one to."""
    found = [*stack_options(end), "--timeout-s", f"{timeout_s}"]
    return found if trace is None else [*found, "--trace", str(Path("/dev/fd") / str(trace))]


def stack_options(end: ScpsEnd, start: int = 0) -> list[str]:
    """Options of SCPS-TP for an end; `start` counts its programs, each of which draws numbers and ports of its own.

    A program notes its states whether anybody wants them or not: while it writes, others can have their turn.
    """
    options = ["--tun", end.device, "--seed", str(end.seed + start), "--states", _path(end, STATES_SUFFIX)]
    if end.np is not None:
        options += ["--network", "np", "--np", _path(end, NP_SUFFIX)]
    if end.sp is not None:
        options += ["--sp", _path(end, SP_SUFFIX)]
    for key, value in end.settings.items():
        options += [f"--{key.replace('_', '-')}", str(value).lower() if isinstance(value, bool) else str(value)]
    return options


def _path(end: ScpsEnd, suffix: str) -> str:
    """Where the programs of an end, which may follow each other, have one of their files."""
    return f"{FOLDER}/{end.device}{suffix}"


def states(network: LabNetwork) -> Iterator[bytes]:
    """What the programs of all nodes have written of their states, by node."""
    for node in network.plan.speaking:
        for path in sorted(network.inside(node.name, FOLDER).glob(f"*{STATES_SUFFIX}")):
            yield path.read_bytes()


def write_settings(network: LabNetwork, node: str, end: ScpsEnd | None) -> None:
    """Gives a node what a program there has to find: settings of SCPS-NP, settings and key of SCPS-SP, if it has
    any; and a file for its states.
    """
    if end is None:
        return
    network.inside(node, _path(end, STATES_SUFFIX)).touch()
    if end.np is not None:
        network.inside(node, _path(end, NP_SUFFIX)).write_text(json.dumps(end_file(end.np), indent=1) + "\n")
    if end.sp is not None:
        write_sp(network, node, end, end.sp)


def as_record(report: JsonObject, wanted_bytes: int, *, is_np: bool) -> JsonObject:
    """A report as the line that labtool writes for the same end: instants in ns of the wall clock (0: it never
    came).
    """

    def instant(name: str) -> int:
        at_s = number(report, name)
        return 0 if at_s is None else whole(report, "origin_ns") + round(at_s * SECOND_NS)

    shared: JsonObject = {
        "bytes": report["bytes"],
        "status": STATUS[str(report["status"])],
        "error": why(report),
        "scps": {
            name: report[name]
            for name in (*KEPT, *(("signals",) if is_np else ()), *(("sp",) if "sp" in report else ()))
        },
    }
    if report["role"] == "send":
        return {
            "event": "sender",
            "connect_ns": instant("opened_s"),
            "connected_ns": instant("established_s"),
            "first_write_ns": instant("established_s"),
            "close_ns": instant("flushed_s"),
            "mss_bytes": section(report, "negotiated")["segment_bytes"],
            "segments": whole(report, "data_segments_sent") + whole(report, "retransmissions"),
            "retransmits": report["retransmissions"],
            "rtos": report["rtos"],
            **shared,
        }
    return {
        "event": "receiver",
        "accept_ns": instant("opened_s"),
        "first_data_ns": instant("first_data_s"),
        "last_data_ns": instant("last_data_s") if whole(report, "bytes") >= wanted_bytes else 0,
        "wrong_bytes": report["wrong_bytes"],
        **shared,
    }


def end_file(end: NpEnd) -> JsonObject:
    """That of a program at the end of a transfer."""
    return {
        "default_precedence": end.default_precedence,
        "believed": list(end.believed),
        "tables": tables(end.hosts, end.next_hops),
    }


def tables(hosts: Iterable[NpHost], next_hops: Iterable[NpHop]) -> JsonObject:
    """What a node of SCPS-NP knows of the others."""
    return {"hosts": [asdict(host) for host in hosts], "next_hops": [asdict(hop) for hop in next_hops]}


OWNER_ONLY = 0o600
KEY_ID = 1
# The first line of a record; a key that nobody has used yet has no other (scps-io, sequence.rs).
RECORD_TITLE = "scps-sp sequence numbers, format 1\n"


def write_sp(network: LabNetwork, node: str, end: ScpsEnd, sp: SpEnd) -> None:
    """Gives a node the settings of a program there, and its key unless another program has it already: its sequence
    numbers go on.
    """
    network.inside(node, _path(end, SP_SUFFIX)).write_text(json.dumps(sp_file(end, sp), indent=1) + "\n")
    key = network.inside(node, f"{FOLDER}/{_key_file(sp)}")
    if not key.exists():
        _write_privately(key, f"master {master_key(sp.key_seed)}\n")
        _write_privately(key.with_name(f"{key.name}.sequence"), RECORD_TITLE)


def sp_file(end: ScpsEnd, sp: SpEnd) -> JsonObject:
    """What the settings file says: one association for each direction."""
    common: JsonObject = {"key_id": KEY_ID, "key_file": _key_file(sp), "suite": sp.suite, "services": list(sp.services)}
    return {"associations": [{"src": src, "dst": dst, **common} for src, dst in ((end.ip, sp.peer), (sp.peer, end.ip))]}


def master_key(seed: str) -> str:
    """The key, 32 octets in hexadecimal digits."""
    return hashlib.sha256(f"scps-sp master {seed}".encode()).hexdigest()


def why(report: JsonObject) -> str:
    """Why a transfer failed, in the program's words, and what SCPS-SP has to say of it."""
    sp, reason = section(report, "sp"), text(report, "reason") or ""
    if sp and sp["sealed"] and not sp["opened"]:
        return f"{reason or 'no reason given'}; SCPS-SP: nothing came that verifies, the other end may have another key"
    return reason


def _key_file(sp: SpEnd) -> str:
    return file_name(sp.key_name, suffix=".key")


def _write_privately(path: Path, text: str) -> None:
    """A file that never was anybody else's to read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY), "w") as file:
        file.write(text)
