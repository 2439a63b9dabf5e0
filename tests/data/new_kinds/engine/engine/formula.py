"""Engine `formula`: no lab. Pings are answered after the delays of the links, on a network that loses nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, ClassVar

from scpslab.core.errors import CapabilityError
from scpslab.engine.base import CellRun, CellSample, Engine, Finding
from scpslab.engine.cell_folder import CellFolder
from scpslab.lab.records import Status
from scpslab.plan import Plan
from scpslab.setup import Say

from scpslab.kinds.workloads.ping.plan import Ping


class FormulaEngine(Engine):
    """Calculates the records of a cell."""

    name: ClassVar[str] = "formula"
    summary: ClassVar[str] = "no lab, pings alone"
    deterministic: ClassVar[bool] = True

    def findings(self) -> list[Finding]:
        """It needs nothing."""
        return [Finding("formula", "ok", "arithmetic")]

    def prepare(self, say: Say, plans: Iterable[Plan]) -> None:
        """Refuses what it has no formula for."""
        for plan in plans:
            for workload in plan.cell.workloads:
                if not isinstance(workload, Ping):
                    raise CapabilityError(
                        f"engine {self.name}: found a workload of kind {workload.kind}; expected ping. "
                        "Use another engine."
                    )

    def hash(self, plan: Plan) -> str:
        """The formula's version."""
        return "formula 1"

    def run(self, cell: CellRun) -> dict[str, Any]:
        """Writes a line for each answer."""
        links = [link for link in cell.plan.network.links for link in link.directions]
        rtt_ns = sum(direction.delay_ns or 0 for direction in links)
        ends_s = 0.0
        with CellFolder.beside(cell.folder, cell.plan) as folder:
            folder.fill()
            folder.out.make_folders()
            for ping in (workload for workload in cell.plan.cell.workloads if isinstance(workload, Ping)):
                lines: list[dict[str, object]] = [{"event": "summary", "sent": ping.count, "received": ping.count}]
                for number in range(ping.count):
                    ends_s = (ping.start_ns + number * ping.interval_ns + rtt_ns) / 1e9
                    lines.insert(-1, {"seq": number + 1, "rtt_ms": rtt_ns / 1e6, "t_s": ends_s})
                folder.out.record(ping.name).write_text("".join(json.dumps(line) + "\n" for line in lines))
                if cell.hear:
                    cell.hear(CellSample(ends_s, ping.name, {"state": "completed"}))
            folder.out.status_file.write_text(Status("completed", virtual_s=ends_s).text())
            return folder.finish(cell.folder, "", "the formula")

    def stop(self) -> None:
        """A cell takes no time."""


KIND = FormulaEngine
