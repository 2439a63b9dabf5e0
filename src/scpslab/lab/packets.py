"""The record of every packet and of TCP's states: the lines that the lab's programs note, and the files that are made
from them (docs/plan-format.md).

Struct layouts follow images/guest/tools/stages.bpf.c.
"""

import operator
import struct
import subprocess
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from scpslab.lab import bpf
from scpslab.lab.place import CGROUP, LABTOOL
from scpslab.plan import Plan
from scpslab.plan.network import OFFER_BYTES, PACKETS_PER_STATE, SIGHT_BYTES, SIGHTS_PER_PACKET, STATE_BYTES

RECORDING = struct.Struct("=QQQQ")
# A state's columns, whose first one is a time; and how many connections, with what programs know of each, are known.
STATE_COLUMNS = b"at:8 near:4 far:4 near_port:2 far_port:2 mss:4 cwnd:4 ssthresh:4 srtt_us:4 lost:4 resent:4 sacked:4"
# Before them, where addresses are those of IPv6 behind the lab's prefix.
IN_IPV6 = b"addresses:ipv6 "
# Those of programs of SCPS (scps-io, states.rs).
SCPS_COLUMNS, SCPS_BYTES = b"at:8 near:4 far:4 near_port:2 far_port:2 mss:4 cwnd_bytes:4 ssthresh_bytes:4 srtt_us:4", 36
KNOWN_STATES, KNOWN_STATE_BYTES = 4096, 32


# Whose packets are nobody's of the plan: nobody knows, the kernel's own, and those of commands.
LAB = "lab"
OTHERS = ("unknown", "kernel", LAB)


class Owners:
    """Who sends: each workload and service has a control group, which its sockets are of, and addresses of its own."""

    def __init__(self, plan: Plan) -> None:
        cell = plan.cell
        self.names = tuple(
            dict.fromkeys((*OTHERS, *(one.name for one in cell.workloads), *(one.name for one in cell.services)))
        )
        self.groups: dict[str, Path] = {}
        # Address, port (0: any) and name; the first one that fits counts.
        ports = ((one.contacted_ip, getattr(one, "port", 0), one.name) for one in cell.workloads)
        self.addresses = [told for told in ports if told[1]]
        self.addresses += [(ip, 0, name) for ip, _, name in cell.own_addresses(plan.network)]

    @contextmanager
    def owning(self, name: str) -> Iterator[None]:
        """Whatever is started meanwhile is this owner's."""
        if name not in self.groups:
            self.groups[name] = CGROUP / f"owner-{len(self.groups)}"
            self.groups[name].mkdir()
        (self.groups[name] / "cgroup.procs").write_text("0")
        try:
            yield
        finally:
            (CGROUP / "cgroup.procs").write_text("0")

    def lines(self) -> Iterator[str]:
        """What labtool is told of them."""
        for name in self.names:
            group = self.groups[name].stat().st_ino & 0xFFFFFFFF if name in self.groups else 0
            yield f"owner {name} {group}\n"
        for ip, port, name in self.addresses:
            yield f"address {ip} {port} {self.names.index(name)}\n"


class PacketLines:
    """Room for the lines of so many packets, counted at every link that they pass."""

    def __init__(self, packets: int) -> None:
        self.recording = bpf.ArrayMap("recording", RECORDING.size, 1)
        self.offers = bpf.ArrayMap("offers", OFFER_BYTES, packets)
        self.sights = bpf.ArrayMap("sights", SIGHT_BYTES, SIGHTS_PER_PACKET * packets)
        self.states = bpf.ArrayMap("states", STATE_BYTES, packets // PACKETS_PER_STATE)
        self.known_states = bpf.HashMap("known_states", KNOWN_STATES, KNOWN_STATE_BYTES, forgets=True)
        self.room = packets

    @property
    def arrays(self) -> Mapping[str, bpf.ArrayMap]:
        """The maps, by the names that the programs have for them."""
        return {"recording": self.recording, "offers": self.offers, "sights": self.sights, "states": self.states}

    def switch(self, is_on: bool) -> None:
        """Begins anew, or records nothing."""
        self.recording.write(0, RECORDING.pack(is_on, 0, 0, 0))

    def stop(self) -> None:
        """Takes no more lines, and keeps those that are there."""
        self.recording.write(0, struct.pack("=Q", False))

    def counts(self) -> tuple[int, int, int]:
        """How many offers, sights and states there were, also those without room."""
        _, offers, sights, states = RECORDING.unpack(self.recording.read(0, RECORDING.size))
        return offers, sights, states

    def used(self) -> int:
        """How much of its room the cell asked for, in lines of packets."""
        offers, sights, states = self.counts()
        return max(offers, -(-sights // SIGHTS_PER_PACKET), states * PACKETS_PER_STATE)

    def write(self, file: Path, told: Iterable[str], epoch_ns: int) -> None:
        """Makes the file; `told`: of owners and directions, as labtool asks for it, `epoch_ns`: on the monotonic
        clock.
        """
        offers, sights, _ = self.counts()
        argv = [LABTOOL, "record", "--epoch-ns", str(epoch_ns)]
        for name, lines, count in (("offer", self.offers, offers), ("sight", self.sights, sights)):
            argv += [f"--{name}s", str(lines.fd), f"--{name}-count", str(count)]
        maps = (self.offers.fd, self.sights.fd)
        with file.open("wb") as output:
            subprocess.run(argv, input="".join(told).encode(), stdout=output, pass_fds=maps, check=True)

    def write_states(self, file: Path, epoch_ns: int, is_ipv6: bool) -> None:
        """Makes the file of TCP's states, in the order in which they were noted."""
        *_, count = self.counts()
        columns = IN_IPV6 + STATE_COLUMNS if is_ipv6 else STATE_COLUMNS
        _write_states(file, columns, self.states.read(0, count * STATE_BYTES), STATE_BYTES, epoch_ns)


def write_scps_states(file: Path, programs: Iterable[bytes], epoch_realtime_ns: int) -> None:
    """Makes the file of SCPS-TP's states, if there are any. A row that a killed program has begun is none."""
    whole = b"".join(one[: len(one) // SCPS_BYTES * SCPS_BYTES] for one in programs)
    rows = [row for (row,) in struct.iter_unpack(f"{SCPS_BYTES}s", whole)]
    if rows:
        rows.sort(key=lambda row: int.from_bytes(row[:8], "little", signed=True))
        _write_states(file, SCPS_COLUMNS, b"".join(rows), SCPS_BYTES, epoch_realtime_ns)


def _write_states(file: Path, columns: bytes, rows: bytes, row_bytes: int, epoch_ns: int) -> None:
    times = [at - epoch_ns for (at,) in struct.iter_unpack(f"=q{row_bytes - 8}x", rows)]
    steps = array("q", map(operator.sub, times, [0, *times])).tobytes()
    with file.open("wb") as output:
        output.write(b"scpslab states 1\ncolumns %s\nstates %d\n" % (columns, len(times)))
        for plane in range(row_bytes):
            output.write(steps[plane::8] if plane < 8 else rows[plane::row_bytes])
