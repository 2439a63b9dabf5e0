"""The counters of a node's interfaces, as /proc/net/dev has them."""

from __future__ import annotations

from pathlib import Path

from scpslab.core.names import file_name
from scpslab.lab.probes import Sampler
from scpslab.lab.records import Records

from scpslab.kinds.probes.counters import plan as planned

HEAD_LINES, RECEIVED_PACKETS, SENT_PACKETS = 2, 1, 9


class Counters(Sampler[planned.Counters], kind="counters"):
    """One line per interface and sample."""

    def prepare(self) -> None:
        """Opens the record."""
        self.path = Path(f"/proc/{self.network.pid(self.spec.node)}/net/dev")
        self.records = Records(self.context.folders.records / file_name(self.name, suffix=".jsonl"))

    def sample(self) -> None:
        """Reads all counters."""
        t_s = self.context.epoch.now_s()
        for line in self.path.read_text().splitlines()[HEAD_LINES:]:
            interface, _, counters = line.partition(":")
            words = counters.split()
            self.records.write(
                t_s=t_s,
                interface=interface.strip(),
                received=int(words[RECEIVED_PACKETS]),
                sent=int(words[SENT_PACKETS]),
            )

    def stop(self) -> None:
        """Closes the record."""
        super().stop()
        self.records.close()
