"""What the error stage (and the queue's limit) decided, packet by packet."""

from __future__ import annotations

from scpslab.lab.probes.base import Probe
from scpslab.lab.records import Records
from scpslab.lab.stages import VERDICTS, slot_of
from scpslab.names import file_name
from scpslab.plan import probes as planned


class VerdictLog(Probe[planned.Verdicts]):
    """One line for every packet of the direction that did not pass unharmed."""

    def stop(self) -> None:
        """Writes the direction's part of the log."""
        direction = self.network.direction(self.spec.link, self.spec.direction)
        lines, missing = self.network.stages.verdict_lines()
        records = Records(self.context.folders.records / file_name(self.name, suffix=".jsonl"))
        for at_ns, ordinal, slot, wire_bytes, verdict, bit_errors in lines:
            mine = slot == slot_of(direction.entering) if VERDICTS[verdict] == "queue" else slot == slot_of(direction.arriving)
            if mine:
                t_s = self.context.epoch.monotonic_t_s(at_ns)
                records.write(t_s=t_s, ordinal=ordinal, wire_bytes=wire_bytes, verdict=VERDICTS[verdict], bit_errors=bit_errors)
        if missing:
            records.write(event="log-full", missing=missing)
        records.close()
