"""One cell from plan to records: network up, probes, epoch, workloads, drain, accounts, status.

Everything is written under WORK, in memory; `finish` copies it to the cell's folder on the user's machine in one go.
"""

from __future__ import annotations

import json
import shutil
import time
from typing import Any

from scpslab.lab import environment, probes, workloads
from scpslab.lab.clock import SECOND_NS, Epoch
from scpslab.lab.docker import Daemon
from scpslab.lab.loop import Loop
from scpslab.lab.network import LabNetwork
from scpslab.lab.pace import Pace
from scpslab.lab.place import CELL, OUT, WORK
from scpslab.lab.records import Records
from scpslab.lab.script import Script
from scpslab.lab.serial import SerialLink
from scpslab.lab.stages import DirectionStages, delay_options
from scpslab.lab.switches import OpenVSwitch

DRAIN_STEP_NS = 50_000_000
DRAIN_LIMIT_NS = 60 * SECOND_NS
STOP_LIMIT_NS = 30 * SECOND_NS
# What ends a cell before its other workloads are over.
GIVEN_UP = ("incomplete", "unsupported")
LOSS_CAUSES = ("queue", "corrupt", "outage", "policy")


class CellFailed(Exception):
    """Something that makes the cell's numbers worthless; the message is the reason in its status."""


class Cell:
    """The state of one cell while it runs."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.records, self.logs, self.captures = WORK / "records", WORK / "logs", WORK / "captures"
        for folder in (self.records, self.logs, self.captures):
            folder.mkdir(parents=True, exist_ok=True)
        self.loop = Loop()
        self.log = Records(self.records / "lab.jsonl")
        self.phases: list[tuple[str, int]] = []
        self.limit_ns = self.now_ns() + plan["limits"]["virtual_s"] * SECOND_NS

    @staticmethod
    def now_ns() -> int:
        """Wall clock, ns."""
        return time.clock_gettime_ns(time.CLOCK_REALTIME)

    def phase(self, name: str) -> None:
        """Notes that a phase begins."""
        self.phases.append((name, self.now_ns()))

    def direction(self, link: str, name: str) -> DirectionStages:
        """A direction of a link. Raises KeyError."""
        for direction in self.network.directions:
            if (direction.link, direction.name) == (link, name):
                return direction
        raise KeyError(f"{link}.{name}")

    def sysctl(self, node: str, name: str, default: str) -> str:
        """The plan's setting of a node's kernel, or the kernel's default as the caller knows it."""
        for planned in self.plan["nodes"]:
            if planned["name"] == node:
                return str(planned["sysctls"].get(name, default))
        return default

    def run(self) -> dict[str, Any]:
        """Runs the cell; returns its status (docs/plan-format.md, status.json)."""
        self.set_up()
        self.start_epoch()
        required = [workload for workload in self.workloads if workload.required]
        in_time = self.loop.run_until(lambda: self._is_over(required), self.limit_ns)
        status, reason = self._outcome(required, in_time)
        self.phase("stop")
        end_ns = self.now_ns()
        overload = self.pace.stop()
        self._stop_workloads()
        drained = self._drain()
        for link in self.serial_links:
            link.settle(self.now_ns, self._rest)
        self._close_workloads()
        self._rest(max((probe.settle_ns for probe in self.probes), default=0))
        for probe in self.probes:
            probe.stop()
        for link in self.serial_links:
            link.close(self.records)
        closes = self._write_accounts()
        if not closes:
            status, reason = "failed", "the accounts of a link do not close: " + ("; ".join(self.open_accounts))
        elif overload:
            status, reason = "failed", overload
        elif not drained and status == "completed":
            reason = "packets were still under way at the end"
        self._write_log()
        return {"status": status, "reason": reason, "epoch_realtime_ns": self.epoch.realtime_ns, "virtual_s": self.epoch.t_s(end_ns)}

    def set_up(self) -> None:
        """Brings the network up."""
        self.phase("switch daemons")
        self.open_vswitch = OpenVSwitch(self.logs)
        if self.plan["containers"] == "docker":
            self.phase("docker")
            Daemon(self.logs).wait()
        self.phase("network")
        self.network = LabNetwork(self.plan, CELL / "vectors", self.logs)
        self.phase("switches")
        self.open_vswitch.wait_for_database()
        self.network.start_switches()
        self.phase("serial links")
        self._set_up_serial_links()
        self.phase("environment")
        environment.write(WORK / "environment.json", self.plan, self.network)

    def _set_up_serial_links(self) -> None:
        self.serial_links = [SerialLink(link, self.network, self.loop, CELL / "vectors", self.logs) for link in self.plan["serial_links"]]
        late = self.network.wiring.late_routes()
        for link in self.serial_links:
            link.set_up(self.now_ns, late)

    def start_epoch(self) -> None:
        """Starts probes and listeners, lets the epoch begin and puts everything else on the loop."""
        self.phase("probes")
        self.epoch = Epoch()
        self.probes = [probes.KINDS[spec["kind"]](spec, self) for spec in self.plan["probes"]]
        for probe in self.probes:
            probe.prepare()
        self.workloads = [workloads.KINDS[spec["kind"]](spec, self) for spec in self.plan["workloads"]]
        for workload in self.workloads:
            workload.prepare()
        self.phase("epoch")
        self.epoch = Epoch()
        self.network.stages.start_epoch(self.epoch.realtime_ns)
        self.pace = Pace(self, self.plan["limits"])
        self.pace.start()
        for link in self.serial_links:
            self.loop.at(self.epoch.realtime_ns, link.start_epoch)
        for probe in self.probes:
            self.loop.at(self.epoch.realtime_ns, probe.start)
        for workload in self.workloads:
            self.loop.at(self.epoch.realtime_ns + workload.spec["start_ns"], workload.start)
        self.script = Script(self, self.plan.get("script", []))
        self.script.schedule()
        for direction in self.network.directions:
            for t_ns, delay_ns in (direction.plan["delay_table"] or [])[1:]:
                self._schedule_delay(direction, t_ns, delay_ns)

    def _schedule_delay(self, direction: DirectionStages, t_ns: int, delay_ns: int) -> None:
        def change() -> None:
            self.network.change_delay(direction, delay_options(direction.plan, delay_ns))

        self.loop.at(self.epoch.realtime_ns + t_ns, change)

    def _is_over(self, required: list[workloads.base.Workload]) -> bool:
        if any(workload.outcome in GIVEN_UP for workload in required) or self.script.reason:
            return True
        return all(workload.outcome for workload in required) and self.script.done()

    def _outcome(self, required: list[workloads.base.Workload], in_time: bool) -> tuple[str, str]:
        if not in_time:
            return "failed", f"the virtual limit of {self.plan['limits']['virtual_s']} s came before the workloads were over"
        for workload in required:
            if workload.outcome in GIVEN_UP:
                return workload.outcome, workload.reason
        if self.script.reason:
            return "incomplete", self.script.reason
        return "completed", ""

    def _stop_workloads(self) -> None:
        for workload in self.workloads:
            workload.stop()
        self.script.stop()
        self.loop.run_until(lambda: all(w.quiet() for w in self.workloads) and self.script.ended(), self.now_ns() + STOP_LIMIT_NS)

    def _close_workloads(self) -> None:
        for workload in self.workloads:
            workload.close()
        if not self.loop.run_until(lambda: all(w.ended() for w in self.workloads), self.now_ns() + STOP_LIMIT_NS):
            for workload in self.workloads:
                for process in workload.processes:
                    if process.poll() is None:
                        process.kill()
        for workload in self.workloads:
            workload.records.close()
        self.script.close()

    def _drain(self) -> bool:
        """Waits until nothing is under way on any link: then every account can close."""
        limit = self.now_ns() + DRAIN_LIMIT_NS
        quiet = 0
        # An empty network can fill again (a delayed acknowledgement, a retransmission): two quiet looks in a row are asked for.
        while quiet < 2:
            if self.now_ns() >= limit:
                return False
            self._rest(DRAIN_STEP_NS)
            quiet = quiet + 1 if all(under_way(counters) == 0 for counters in self._accounts()) else 0
        return True

    def _accounts(self) -> list[dict[str, int]]:
        """The counters of every direction, those of managed queues included."""
        managed = self.network.queue_drops()
        accounts = [self.network.stages.account(direction) for direction in self.network.directions]
        for direction, counters in zip(self.network.directions, accounts, strict=True):
            counters["queue_packets"] += managed.get((direction.link, direction.name), 0)
        return accounts

    def _rest(self, duration_ns: int) -> None:
        """Lets the network go on by itself for a while."""
        until = self.now_ns() + duration_ns
        self.loop.run_until(lambda: self.now_ns() >= until, until)

    def _write_accounts(self) -> bool:
        """Writes the accounts as they are at one quiet instant: a peer whose last acknowledgement was lost may still say something now and then."""
        limit = self.now_ns() + DRAIN_LIMIT_NS
        accounts = self._accounts()
        while any(under_way(counters) for counters in accounts) and self.now_ns() < limit:
            self._rest(DRAIN_STEP_NS)
            accounts = self._accounts()
        records = Records(self.records / "accounting.jsonl")
        self.open_accounts: list[str] = []
        for direction, counters in zip(self.network.directions, accounts, strict=True):
            missing = under_way(counters)
            if missing:
                self.open_accounts.append(f"{direction.link}.{direction.name}: offered {counters['offered_packets']}, {missing} unaccounted for")
            records.write(link=direction.link, direction=direction.name, **counters, closes=missing == 0)
        records.close()
        return not self.open_accounts

    def _write_log(self) -> None:
        self.log.write(event="epoch", realtime_ns=self.epoch.realtime_ns)
        for name, realtime_ns in self.phases:
            self.log.write(event="phase", name=name, t_s=self.epoch.t_s(realtime_ns))
        for workload in self.workloads:
            self.log.write(event="workload", name=workload.name, outcome=workload.outcome or "stopped", reason=workload.reason)
        self.log.close()


def under_way(counters: dict[str, int]) -> int:
    """Packets offered, or doubled on the way, that are neither delivered nor lost for a stated cause."""
    lost = sum(counters[f"{cause}_packets"] for cause in LOSS_CAUSES)
    return counters["offered_packets"] + counters["duplicated_packets"] - counters["delivered_packets"] - lost


def finish(status: dict[str, Any]) -> None:
    """Copies what the cell wrote to the user's machine, its status last."""
    for source in sorted(WORK.rglob("*")):
        target = CELL / OUT / source.relative_to(WORK)
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    (CELL / OUT).mkdir(exist_ok=True)
    (CELL / OUT / "status.json").write_text(json.dumps(status, indent=1) + "\n")
