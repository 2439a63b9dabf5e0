"""The record of every packet: the lines that the stages of the links note, and the file that is made from them
(docs/plan-format.md).

Struct layouts follow images/guest/tools/stages.bpf.c.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from scpslab.lab import bpf
from scpslab.lab.place import CGROUP, LABTOOL
from scpslab.plan import Plan
from scpslab.plan.network import OFFER_BYTES, SIGHT_BYTES, SIGHTS_PER_PACKET

RECORDING = struct.Struct("=QQQ")


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
        ends = ((one.name, end) for one in cell.workloads for end in (one.sending_program, one.receiving_program))
        self.addresses += [(end.ip, 0, name) for name, end in ends if end is not None]
        for service in cell.services:
            self.addresses += [(ip, 0, service.name) for ip in service.own_ips(plan.network)]

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
        self.room = packets

    @property
    def arrays(self) -> Mapping[str, bpf.ArrayMap]:
        """The maps, by the names that the programs have for them."""
        return {"recording": self.recording, "offers": self.offers, "sights": self.sights}

    def switch(self, is_on: bool) -> None:
        """Begins anew, or records nothing."""
        self.recording.write(0, RECORDING.pack(is_on, 0, 0))

    def stop(self) -> None:
        """Takes no more lines, and keeps those that are there."""
        self.recording.write(0, struct.pack("=Q", False))

    def counts(self) -> tuple[int, int]:
        """How many offers and sights there were, also those without room."""
        _, offers, sights = RECORDING.unpack(self.recording.read(0, RECORDING.size))
        return offers, sights

    def write(self, file: Path, told: Iterable[str], epoch_ns: int) -> None:
        """Makes the file; `told`: of owners and directions, as labtool asks for it, `epoch_ns`: on the monotonic
        clock.
        """
        offers, sights = self.counts()
        argv = [LABTOOL, "record", "--epoch-ns", str(epoch_ns)]
        for name, array, count in (("offer", self.offers, offers), ("sight", self.sights, sights)):
            argv += [f"--{name}s", str(array.fd), f"--{name}-count", str(count)]
        maps = (self.offers.fd, self.sights.fd)
        with file.open("wb") as output:
            subprocess.run(argv, input="".join(told).encode(), stdout=output, pass_fds=maps, check=True)
