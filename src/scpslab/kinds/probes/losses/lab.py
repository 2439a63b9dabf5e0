"""What the error stage (and the queue's limit) decided, packet by packet."""

from __future__ import annotations

from scpslab.core.names import file_name
from scpslab.lab.probes import Probe
from scpslab.lab.records import Records

from scpslab.kinds.probes.losses import plan as planned


class LossLog(Probe[planned.Losses], kind="losses"):
    """One line for every packet of the direction that did not pass unharmed."""

    def stop(self) -> None:
        """Writes the direction's part of the log."""
        direction = self.network.direction(self.spec.link, self.spec.direction)
        verdicts, missing = self.network.stages.verdicts_of(direction)
        records = Records(self.context.folders.records / file_name(self.name, suffix=".jsonl"))
        for verdict in verdicts:
            t_s = self.context.epoch.monotonic_t_s(verdict.at_ns)
            records.write(
                t_s=t_s,
                ordinal=verdict.ordinal,
                wire_bytes=verdict.wire_bytes,
                verdict=verdict.word,
                bit_errors=verdict.bit_errors,
            )
        if missing:
            records.write(event="log-full", missing=missing)
        records.close()
