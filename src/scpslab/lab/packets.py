"""The record of every packet: the lines that the stages of the links note, and the file that is made from them
(docs/plan-format.md).

Struct layouts follow images/guest/tools/stages.bpf.c.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from scpslab.lab import bpf
from scpslab.lab.place import LABTOOL

NAME = "packets.rec"
RECORDING = struct.Struct("=QQQ")
OFFER_BYTES, SIGHT_BYTES = 136, 24
# A packet is seen where it leaves and where it arrives, and may arrive twice.
SIGHTS_PER_PACKET = 2
LINE_BYTES = OFFER_BYTES + SIGHTS_PER_PACKET * SIGHT_BYTES


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
        """Begins anew, or stops."""
        self.recording.write(0, RECORDING.pack(is_on, 0, 0))

    def counts(self) -> tuple[int, int]:
        """How many offers and sights there were, also those without room."""
        _, offers, sights = RECORDING.unpack(self.recording.read(0, RECORDING.size))
        return offers, sights

    def write(self, records: Path, directions: Iterable[str], epoch_ns: int) -> None:
        """Makes the file; `directions`: what labtool asks for of each, `epoch_ns`: on the monotonic clock."""
        offers, sights = self.counts()
        work = records.parent
        raw = {"offers": (self.offers, min(offers, self.room)), "sights": (self.sights, min(sights, 2 * self.room))}
        for name, (array, count) in raw.items():
            (work / name).write_bytes(array.read(0, count * array.stride))
        argv = [LABTOOL, "record", "--epoch-ns", str(epoch_ns)]
        argv += [word for name in raw for word in (f"--{name}", str(work / name))]
        with (records / NAME).open("wb") as file:
            subprocess.run(argv, input="".join(directions).encode(), stdout=file, check=True)
        for name in raw:
            (work / name).unlink()
