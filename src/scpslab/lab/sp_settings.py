"""SCPS-SP of a `scps` program: its settings file, its key and the record of the key's sequence numbers, in the node's own /tmp; its word on a failure.

A key is made from a seed of the plan, so that a cell gives the same packets again: it protects nothing that somebody with the plan must not read.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scpslab.core.names import file_name
from scpslab.plan.sp import SpEnd
from scpslab.plan.stacks import ScpsEnd

if TYPE_CHECKING:
    from scpslab.lab.network import LabNetwork

FOLDER = "/tmp"
OWNER_ONLY = 0o600
KEY_ID = 1
# The first line of a record; a key that nobody has used yet has no other (scps-io, sequence.rs).
RECORD_TITLE = "scps-sp sequence numbers, format 1\n"


def sp_path(end: ScpsEnd) -> str:
    """Where a program's node has its settings of SCPS-SP."""
    return f"{FOLDER}/{end.device}-sp.json"


def write_sp(network: LabNetwork, node: str, end: ScpsEnd, sp: SpEnd) -> None:
    """Gives a node the settings of a program there, and its key unless another program has it already: its sequence numbers go on."""
    network.inside(node, sp_path(end)).write_text(json.dumps(sp_file(end, sp), indent=1) + "\n")
    key = network.inside(node, f"{FOLDER}/{_key_file(sp)}")
    if not key.exists():
        _write_privately(key, f"master {master_key(sp.key_seed)}\n")
        _write_privately(key.with_name(f"{key.name}.sequence"), RECORD_TITLE)


def sp_file(end: ScpsEnd, sp: SpEnd) -> dict[str, Any]:
    """What the settings file says: one association for each direction."""
    common = {"key_id": KEY_ID, "key_file": _key_file(sp), "suite": sp.suite, "services": list(sp.services)}
    return {"associations": [{"src": src, "dst": dst, **common} for src, dst in ((end.ip, sp.peer), (sp.peer, end.ip))]}


def master_key(seed: str) -> str:
    """The key, 32 octets in hexadecimal digits."""
    return hashlib.sha256(f"scps-sp master {seed}".encode()).hexdigest()


def why(report: dict[str, Any]) -> str:
    """Why a transfer failed, in the program's words, and what SCPS-SP has to say of it."""
    sp = report.get("sp")
    if sp and sp["sealed"] and not sp["opened"]:
        return f"{report['reason'] or 'no reason given'}; SCPS-SP: nothing came that verifies, the other end may have another key"
    return report["reason"] or ""


def _key_file(sp: SpEnd) -> str:
    return file_name(sp.key_name, suffix=".key")


def _write_privately(path: Path, text: str) -> None:
    """A file that never was anybody else's to read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY), "w") as file:
        file.write(text)
