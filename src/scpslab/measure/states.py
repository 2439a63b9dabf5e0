"""Reads records/states.rec: the kernel's state of each connection of TCP, whenever it changed (docs/plan-format.md).

The file may be a stranger's: what it says of its size is held against its length before anything is made of it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from scpslab.core.contents import LARGEST_FILE, content_of
from scpslab.core.errors import ResultError
from scpslab.measure.connections import Ints
from scpslab.measure.shown import seconds

COLUMNS = {
    "at": 8,
    "near": 4,
    "far": 4,
    "near_port": 2,
    "far_port": 2,
    "mss": 4,
    "cwnd": 4,
    "ssthresh": 4,
    "srtt_us": 4,
    "lost": 4,
    "resent": 4,
    "sacked": 4,
}
HEADER = re.compile(
    b"scpslab states 1\ncolumns "
    + b" ".join(b"%s:%d" % (name.encode(), size) for name, size in COLUMNS.items())
    + rb"\nstates (\d{1,10})\n"
)
SHOWN = (
    *("t_s", "local", "remote", "mss_bytes", "cwnd_segments", "ssthresh_segments", "srtt_us", "lost_segments"),
    *("resent_segments", "sacked_segments"),
)
# What a threshold that was never set is.
UNSET = (1 << 31) - 1


@dataclass(frozen=True, eq=False)
class States:
    """The states of one end of a connection, int64[n] each: from when they held (ns since the epoch), cwnd, ssthresh
    (UNSET: never set) and what is lost, sent again or known by SACK in segments of `mss`, srtt in µs.
    """

    local: str
    remote: str
    t_ns: Ints
    mss: Ints
    cwnd: Ints
    ssthresh: Ints
    srtt_us: Ints
    lost: Ints
    resent: Ints
    sacked: Ints

    @property
    def cwnd_bytes(self) -> Ints:
        """The window in bytes of full segments."""
        return self.cwnd * self.mss

    @property
    def ssthresh_bytes(self) -> Ints:
        """The threshold likewise, -1 where it was never set."""
        return np.where(self.ssthresh >= UNSET, -1, self.ssthresh * self.mss)


def read(path: Path) -> tuple[States, ...]:
    """The states of each end, in the order in which these were first seen; none where there is no such file.

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
    count = int(said[1]) if said else -1
    if said is None or len(content) != said.end() + count * sum(COLUMNS.values()):
        found = "another first line" if said is None else f"{len(content) - said.end()} bytes for {count} states"
        raise ResultError(
            f"{path}: found {found}; expected the states of TCP (docs/plan-format.md). Run the cell again."
        )
    at, columns = said.end(), {}
    for name, size in COLUMNS.items():
        planes = np.frombuffer(content, np.uint8, size * count, at).reshape(size, count)
        numbers = np.ascontiguousarray(planes.T).view(f"<{'i' if name == 'at' else 'u'}{size}").reshape(count)
        columns[name] = numbers.astype(np.int64)
        at += size * count
    columns["at"] = np.cumsum(columns["at"])
    return tuple(_ends(columns))


def _ends(columns: dict[str, Ints]) -> Iterator[States]:
    ends = np.stack([columns.pop(name) for name in ("near", "near_port", "far", "far_port")], axis=1)
    different, firsts, number = np.unique(ends, axis=0, return_index=True, return_inverse=True)
    t_ns = columns.pop("at")
    for one in np.argsort(firsts):
        near, near_port, far, far_port = different[one].tolist()
        rows = np.flatnonzero(number.reshape(-1) == one)
        values = {name: column[rows] for name, column in columns.items()}
        yield States(_end(near, near_port), _end(far, far_port), t_ns[rows], **values)


def _end(address: int, port: int) -> str:
    """The address stands in network order in what is read in the order of the machine."""
    return f"{ipaddress.IPv4Address(address.to_bytes(4, 'little'))}:{port}"


def rows(found: Sequence[States]) -> Iterator[tuple[object, ...]]:
    """Lines of a table, columns as SHOWN has them."""
    for one in found:
        numbers = (one.t_ns, one.mss, one.cwnd, one.ssthresh, one.srtt_us, one.lost, one.resent, one.sacked)
        for t_ns, mss, cwnd, ssthresh, *others in zip(*(column.tolist() for column in numbers), strict=True):
            is_set = None if ssthresh >= UNSET else ssthresh
            yield (seconds(t_ns), one.local, one.remote, mss, cwnd, is_set, *others)
