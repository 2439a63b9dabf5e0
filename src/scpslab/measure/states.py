"""Reads records/states.rec, scps-states.rec and those of gateways: what congestion control knew of each connection of
TCP and SCPS-TP, whenever that changed (docs/plan-format.md).

A file may be a stranger's: what it says of its size is held against its length before anything is made of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import numpy as np

from scpslab.core.addresses import SIX, end, text
from scpslab.core.contents import LARGEST_FILE, content_of
from scpslab.core.errors import ResultError
from scpslab.measure.connections import Ints
from scpslab.measure.packets import columns, layout, seconds

ENDS = {"at": 8, "near": 4, "far": 4, "near_port": 2, "far_port": 2, "mss": 4}
# Of the kernel's TCP, and of SCPS-TP.
SEGMENTS = {"cwnd": 4, "ssthresh": 4, "srtt_us": 4, "lost": 4, "resent": 4, "sacked": 4}
OCTETS = {"cwnd_bytes": 4, "ssthresh_bytes": 4, "srtt_us": 4}
COLUMNS = rb"(?P<ipv6>addresses:ipv6 )?(?P<columns>[a-z_0-9: ]{1,200})"
HEADER = re.compile(rb"scpslab states 1\ncolumns " + COLUMNS + rb"\nstates (?P<count>\d{1,10})\n")
SHOWN = (
    *("t_s", "local", "remote", "mss_bytes", "cwnd_bytes", "ssthresh_bytes", "srtt_us", "lost_segments"),
    *("resent_segments", "sacked_segments", "gateway"),
)
# What a threshold of the kernel's that was never set is, in segments; and a window or threshold of SCPS-TP's where
# there is none, in bytes. Here both are NONE.
UNSET, WITHOUT, NONE = (1 << 31) - 1, (1 << 32) - 1, -1


@dataclass(frozen=True, eq=False)
class States:
    """The states of one end of a connection, int64[n] each: from when they held (ns since the epoch), window and
    threshold (NONE: there is none), srtt in µs; and of the kernel's TCP what is lost, sent again or known by SACK, in
    segments. `gateway`: the node whose gateway has the connection, over the link; "" if a program has.
    """

    local: str
    remote: str
    t_ns: Ints
    mss: Ints
    cwnd_bytes: Ints
    ssthresh_bytes: Ints
    srtt_us: Ints
    lost: Ints | None = None
    resent: Ints | None = None
    sacked: Ints | None = None
    gateway: str = ""


def read(path: Path, gateway: str = "") -> tuple[States, ...]:
    """The states of each end in a file, a gateway's or others, in the order in which these were first seen; none where
    there is no such file.

    Raises:
        ResultError: the file is no such record.
    """
    if not path.is_file():
        return ()
    try:
        content = content_of(path, LARGEST_FILE)
    except OSError as error:
        raise ResultError(f"{path}: found {error.strerror}; expected the states of TCP. Run the cell again.") from error
    said = HEADER.match(content)
    forms = [form for form in (ENDS | SEGMENTS, ENDS | OCTETS) if said and said["columns"] == layout(form)]
    count = int(said["count"]) if said else -1
    if said is None or not forms or len(content) != said.end() + count * sum(forms[0].values()):
        what = f"{len(content) - said.end()} bytes for {count} states" if said and forms else "other first lines"
        raise ResultError(
            f"{path}: found {what}; expected the states of TCP (docs/plan-format.md). Run the cell again."
        )
    raw = columns(content[said.end() :], forms[0], count)
    found = {name: column.astype(np.int64) for name, column in raw.items()}
    found["at"] = np.cumsum(found["at"])
    if "cwnd" in found:
        mss, cwnd, ssthresh = found["mss"], found.pop("cwnd"), found.pop("ssthresh")
        found |= {"cwnd_bytes": cwnd * mss, "ssthresh_bytes": np.where(ssthresh >= UNSET, NONE, ssthresh * mss)}
    else:
        for name in ("cwnd_bytes", "ssthresh_bytes"):
            found[name] = np.where(found[name] == WITHOUT, NONE, found[name])
    return tuple(_ends(found, SIX if said["ipv6"] else 0, gateway))


def _ends(columns: dict[str, Ints], family: int, gateway: str) -> Iterator[States]:
    ends = np.stack([columns.pop(name) for name in ("near", "near_port", "far", "far_port")], axis=1)
    different, firsts, number = np.unique(ends, axis=0, return_index=True, return_inverse=True)
    t_ns = columns.pop("at")
    for one in np.argsort(firsts):
        near, near_port, far, far_port = different[one].tolist()
        rows = np.flatnonzero(number.reshape(-1) == one)
        values = {name: column[rows] for name, column in columns.items()}
        local, remote = (_end(ip, port, family) for ip, port in ((near, near_port), (far, far_port)))
        yield States(local, remote, t_ns[rows], **values, gateway=gateway)


def _end(address: int, port: int, family: int) -> str:
    """The address stands in network order in what is read in the order of the machine."""
    return end(text(int.from_bytes(address.to_bytes(4, "little"), "big") | family), port)


def rows(found: Sequence[States]) -> Iterator[tuple[object, ...]]:
    """Lines of a table, columns as SHOWN has them."""
    for one in found:
        told = (one.mss, one.cwnd_bytes, one.ssthresh_bytes, one.srtt_us, one.lost, one.resent, one.sacked)
        columns = [repeat(None) if column is None else column.tolist() for column in told]
        for t_ns, *numbers in zip(one.t_ns.tolist(), *columns, strict=False):
            shown = (None if number == NONE else number for number in numbers)
            yield seconds(t_ns), one.local, one.remote, *shown, one.gateway
