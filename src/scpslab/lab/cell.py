"""One cell from plan to records: network up, probes, epoch, workloads, drain, accounts, status.

Everything is written under WORK, in memory; `finish` copies it to the cell's folder on the user's machine in one go.
"""

from __future__ import annotations

import json
import shutil
from typing import Any

from scpslab.lab import environment, probes, services, workloads
from scpslab.lab.accounts import Accounts
from scpslab.lab.clock import SECOND_NS, Epoch
from scpslab.lab.context import Context, Folders
from scpslab.lab.docker import Daemon
from scpslab.lab.loop import Loop
from scpslab.lab.network import LabNetwork
from scpslab.lab.pace import Pace
from scpslab.lab.place import CELL, OUT, WORK
from scpslab.lab.records import Records, Trace
from scpslab.lab.script import Script
from scpslab.lab.serial import SerialLink
from scpslab.lab.space import Space, spare_gaps
from scpslab.lab.stages import DirectionStages, delay_options
from scpslab.lab.switches import OpenVSwitch
from scpslab.lab.workloads.base import Workload
from scpslab.plan import NetworkPlan, Plan
from scpslab.plan.nodes import Switch

STOP_LIMIT_NS = 30 * SECOND_NS
VECTORS = CELL / "vectors"
# Outcomes that end a cell before its other workloads have ended.
GIVEN_UP = ("incomplete", "unsupported")


class LabCell:
    """The state of one cell while it runs: `set_up` makes its network, `take` gives it its `plan`."""

    plan: Plan

    def __init__(self, network: NetworkPlan, space: Space) -> None:
        """`space`: what the stages of the links have room for."""
        self.network_plan, self.space = network, space
        self.folders = Folders.made_in(WORK)
        self.loop = Loop()
        self.log = Records(self.folders.records / "lab.jsonl")
        self.phases: list[tuple[str, int]] = []
        self.services = services.Services()
        self.routers: list[services.Service] = []

    def phase(self, name: str) -> None:
        """Notes that a phase begins."""
        self.phases.append((name, Context.now_ns()))

    def run(self) -> dict[str, Any]:
        """Runs the cell on its network, which is up; returns its status (docs/plan-format.md, status.json)."""
        limit_ns = Context.now_ns() + self.plan.cell.limits.virtual_s * SECOND_NS
        self.start_epoch()
        required = [workload for workload in self.workloads if workload.required]
        in_time = self.loop.run_until(lambda: self._is_over(required), limit_ns)
        status, reason = self._outcome(required, in_time)
        self.phase("stop")
        end_ns = Context.now_ns()
        overload = self.pace.stop() if self.pace else ""
        self._stop_workloads()
        for service in reversed(self.planned_services):
            service.end(STOP_LIMIT_NS)
            service.write_records(self.folders.records)
        accounts = Accounts(self.context)
        drained = accounts.drain()
        for link in self.serial_links:
            link.settle(Context.now_ns, self.context.rest)
        self._close_workloads()
        for router in self.routers:
            router.end(STOP_LIMIT_NS)
            router.write_records(self.folders.records)
        self.context.rest(max((probe.settle_ns for probe in self.probes), default=0))
        for probe in self.probes:
            probe.stop()
        for link in self.serial_links:
            link.close(self.folders.records, {router.node: found[link.name] for router in self.routers if link.name in (found := router.counted)})
        if still_open := accounts.write():
            status, reason = "failed", "the accounts of a link do not close: " + ("; ".join(still_open))
        elif overload:
            status, reason = "failed", overload
        elif not drained and status == "completed":
            reason = "packets were still under way at the end"
        self._write_log()
        return {"status": status, "reason": reason, "epoch_realtime_ns": self.context.epoch.realtime_ns, "virtual_s": self.context.epoch.t_s(end_ns)}

    def set_up(self) -> None:
        """Brings the network up."""
        # Without a switch nobody needs its daemons, whose memory every fork would copy.
        has_switches = any(isinstance(node, Switch) for node in self.network_plan.nodes)
        if has_switches:
            self.phase("switch daemons")
            self.open_vswitch = OpenVSwitch(self.folders.logs)
        if self.network_plan.containers == "docker":
            self.phase("docker")
            Daemon(self.folders.logs).wait()
        self.phase("network")
        self.network = LabNetwork(self.network_plan, self.space, self.folders.logs)
        if has_switches:
            self.phase("switches")
            self.open_vswitch.wait_for_database()
        self.network.start()
        self.phase("serial links")
        self._set_up_serial_links()
        self.phase("environment")
        environment.write(WORK / "environment.json", self.network)

    def take(self, plan: Plan) -> None:
        """Gives the network what is the cell's own. Everything before is the same for all cells of a template."""
        self.phase("cell")
        self.plan = plan
        self.network.take(plan.cell, spare_gaps(plan), VECTORS)
        for link in self.serial_links:
            link.take(plan.cell, VECTORS)
        self.routers = [service for service in self._planned_services() if service.carries_packets]
        for router in self.routers:
            self.services.start(router)

    def _set_up_serial_links(self) -> None:
        self.serial_links = [SerialLink(link, self.network, self.loop, self.folders.logs) for link in self.network_plan.serial_links]
        late = self.network.wiring.late_routes()
        for link in self.serial_links:
            link.set_up(Context.now_ns, late)

    def start_epoch(self) -> None:
        """Starts probes and listeners, lets the epoch begin and puts everything else on the loop."""
        self.phase("probes")
        self.context = Context(self.loop, self.network, self.folders, self.log, Epoch(), self._traces, self.services)
        self.probes = [probes.KINDS[planned.kind](planned, self.context) for planned in self.plan.cell.probes]
        for probe in self.probes:
            probe.prepare()
        self.start_services()
        self.workloads = [workloads.KINDS[planned.kind](planned, self.context) for planned in self.plan.cell.workloads]
        for workload in self.workloads:
            workload.prepare()
        self.phase("epoch")
        epoch = self.context.epoch = Epoch()
        self.network.stages.start_epoch(epoch.realtime_ns)
        self.pace = Pace.asked_for(self.context, self.plan.cell.limits)
        if self.pace:
            self.pace.start()
        for link in self.serial_links:
            self.loop.at(epoch.realtime_ns, link.start_epoch)
        for probe in self.probes:
            self.loop.at(epoch.realtime_ns, probe.start)
        for workload in self.workloads:
            self.loop.at(epoch.realtime_ns + workload.spec.start_ns, workload.start)
        self.script = Script(self.context, self.plan.cell.script)
        self.script.schedule()
        for direction in self.network.directions:
            for t_ns, delay_ns in (direction.plan.delay_table or ())[1:]:
                self._schedule_delay(direction, t_ns, delay_ns)

    def start_services(self) -> None:
        """Starts the plan's services, each when the one before is ready."""
        self.planned_services = [service for service in self._planned_services() if not service.carries_packets]
        self.ready_ns: list[int] = []
        for service in self.planned_services:
            self.services.start(service)
            self.ready_ns.append(Context.now_ns())

    def _planned_services(self) -> list[services.Service]:
        return [services.KINDS[planned.kind](planned, self.network, self.loop) for planned in self.plan.cell.services]

    def _traces(self, node: str) -> list[Trace]:
        return [trace for workload in self.workloads for trace in workload.traces(node)]

    def _schedule_delay(self, direction: DirectionStages, t_ns: int, delay_ns: int) -> None:
        def change() -> None:
            self.network.change_delay(direction, delay_options(direction, delay_ns))

        self.loop.at(self.context.epoch.realtime_ns + t_ns, change)

    def _is_over(self, required: list[Workload[Any]]) -> bool:
        if any(workload.outcome in GIVEN_UP for workload in required) or self.script.reason or self.script.broken:
            return True
        if self.services.broken:
            return True
        return all(workload.outcome for workload in required) and self.script.done()

    def _outcome(self, required: list[Workload[Any]], in_time: bool) -> tuple[str, str]:
        if not in_time:
            return "failed", f"the virtual limit of {self.plan.cell.limits.virtual_s} s came before the workloads were over"
        if broken := self.script.broken or self.services.broken:
            return "failed", broken
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
        self.loop.run_until(lambda: all(w.quiet() for w in self.workloads) and self.script.ended(), Context.now_ns() + STOP_LIMIT_NS)

    def _close_workloads(self) -> None:
        for workload in self.workloads:
            workload.close()
        if not self.loop.run_until(lambda: all(w.ended() for w in self.workloads), Context.now_ns() + STOP_LIMIT_NS):
            for workload in self.workloads:
                for process in workload.processes:
                    if process.poll() is None:
                        process.kill()
        for workload in self.workloads:
            workload.records.close()
        self.script.close()

    def _write_log(self) -> None:
        self.log.write(event="epoch", realtime_ns=self.context.epoch.realtime_ns)
        for name, realtime_ns in self.phases:
            self.log.write(event="phase", name=name, t_s=self.context.epoch.t_s(realtime_ns))
        for service, ready_ns in zip(self.planned_services, self.ready_ns, strict=True):
            self.log.write(event="service", name=service.name, node=service.node, ready_t_s=self.context.epoch.t_s(ready_ns))
        for workload in self.workloads:
            self.log.write(event="workload", name=workload.name, outcome=workload.outcome or "stopped", reason=workload.reason)
        self.log.close()


def finish(status: dict[str, Any]) -> None:
    """Copies what the cell wrote to the user's machine, its status last."""
    for source in sorted(WORK.rglob("*")):
        target = CELL / OUT / source.relative_to(WORK)
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    (CELL / OUT).mkdir(exist_ok=True)
    (CELL / OUT / "status.json").write_text(json.dumps(status, indent=1) + "\n")
