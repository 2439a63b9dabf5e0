"""One cell from plan to records: network up, probes, epoch, workloads, drain, accounts, status.

Everything is written under WORK, in memory; `finish` copies it to the cell's folder on the user's machine in one go.
"""

from __future__ import annotations

import shutil
from functools import partial
from typing import Any

from scpslab.core.names import file_name
from scpslab.lab import probes, scps_end, services, workloads
from scpslab.lab.accounts import Accounts, Pace
from scpslab.lab.changes import Events
from scpslab.lab.context import Context, Folders
from scpslab.lab.docker import Daemon
from scpslab.lab.loop import SECOND_NS, Loop
from scpslab.lab.network import LabNetwork, write_environment
from scpslab.lab.packets import write_scps_states
from scpslab.lab.place import CELL, OUT, WORK
from scpslab.lab.records import GATEWAY_STATES, SCPS_STATES, Records, Status, keep_end
from scpslab.lab.serial import SerialLink
from scpslab.lab.stages import DirectionStages, Settled
from scpslab.lab.switches import OpenVSwitch
from scpslab.lab.template import Space, spare_gaps
from scpslab.plan import NetworkPlan, Plan
from scpslab.plan.nodes import Switch

OPEN = "the accounts of a link do not close: "
STOP_LIMIT_NS = 30 * SECOND_NS
VECTORS = CELL / "vectors"
# Outcomes that end a cell before its other workloads have ended.
GIVEN_UP = ("incomplete", "unsupported")


class Lab:
    """A network that is up, for a cell."""

    def __init__(self, network: NetworkPlan, space: Space) -> None:
        """Brings it up. `space`: what the stages of the links have room for."""
        self.folders = Folders.made_in(WORK)
        self.loop = Loop()
        self.log = Records(self.folders.records / "lab.jsonl")
        self.phases: list[tuple[str, int]] = []
        # Without a switch nobody needs its daemons, whose memory every fork would copy.
        self.open_vswitch: OpenVSwitch | None = None
        if any(isinstance(node, Switch) for node in network.nodes):
            self.phase("switch daemons")
            self.open_vswitch = OpenVSwitch(self.folders.logs)
        if network.containers == "docker":
            self.phase("docker")
            Daemon(self.folders.logs).wait()
        self.phase("network")
        self.network = LabNetwork(network, space, self.folders.logs)
        if self.open_vswitch:
            self.phase("switches")
            self.open_vswitch.wait_for_database()
        self.network.start()
        self.phase("serial links")
        late = self.network.wiring.late_routes()
        logs = self.folders.logs
        self.serial_links = [SerialLink(link, self.network, self.loop, logs, late) for link in network.serial_links]
        self.phase("environment")
        write_environment(WORK / "environment.json", self.network)

    def phase(self, name: str) -> None:
        """Notes that a phase begins."""
        self.phases.append((name, Context.now_ns()))

    def take(self, plan: Plan) -> Prepared:
        """Gives the network what is the cell's own. Everything before is the same for all cells of a template."""
        self.phase("cell")
        settled = self.network.take(plan, spare_gaps(plan), VECTORS)
        for link in self.serial_links:
            link.take(plan.cell, VECTORS)
        return Prepared(self, plan, settled)


class Prepared:
    """A lab with a cell: its network has the cell's errors, and carries packets."""

    def __init__(self, lab: Lab, plan: Plan, settled: Settled) -> None:
        """Starts the services that packets pass."""
        self.lab, self.plan, self.settled, self.network = lab, plan, settled, lab.network
        self.services = services.Services()
        self.routers = [service for service in self._planned() if service.carries_packets]
        for router in self.routers:
            self.services.start(router)

    def start_services(self) -> dict[services.Service, int]:
        """Starts the plan's other services, each when the one before is ready; returns when each was, ns."""
        ready_ns = {}
        for service in self._planned():
            if not service.carries_packets:
                self.services.start(service)
                ready_ns[service] = Context.now_ns()
        return ready_ns

    def _planned(self) -> list[services.Service]:
        return [services.KINDS[one.kind](one, self.network, self.lab.loop) for one in self.plan.cell.services]

    def run(self) -> Status:
        """Runs the cell to its end."""
        return Running(self).to_its_end()


class Running:
    """A cell from its epoch on."""

    def __init__(self, prepared: Prepared) -> None:
        """Starts probes and listeners, lets the epoch begin and puts everything else on the loop."""
        lab = self.lab = prepared.lab
        self.prepared, self.loop, self.network = prepared, lab.loop, lab.network
        self.limits, cell = prepared.plan.cell.limits, prepared.plan.cell
        self.limit_ns = Context.now_ns() + self.limits.virtual_s * SECOND_NS
        lab.phase("probes")
        self.context = Context(
            loop=lab.loop,
            network=lab.network,
            settled=prepared.settled,
            folders=lab.folders,
            log=lab.log,
            traces=lambda node: [trace for workload in self.workloads for trace in workload.traces(node)],
            services=prepared.services,
        )
        self.probes = [probes.KINDS[planned.kind](planned, self.context) for planned in cell.probes]
        for probe in self.probes:
            probe.prepare()
        self.ready_ns = prepared.start_services()
        self.workloads = [workloads.KINDS[planned.kind](planned, self.context) for planned in cell.workloads]
        for workload in self.workloads:
            workload.prepare()
        self.is_stopping = False
        self.required = [workload for workload in self.workloads if workload.required]
        lab.phase("epoch")
        epoch = self.context.begin()
        self.network.stages.start_epoch(epoch.monotonic_ns(0))
        self.pace = Pace.asked_for(self.context, self.limits)
        if self.pace:
            self.pace.start()
        for link in lab.serial_links:
            self.loop.at(epoch.realtime_ns, link.start_epoch)
        for probe in self.probes:
            self.loop.at(epoch.realtime_ns, probe.start)
        for workload in self.workloads:
            self.loop.at(epoch.realtime_ns + workload.spec.start_ns, partial(self._begin, workload))
        self.events = Events(self.context, cell.events)
        self.events.schedule()
        self.instants = None
        if any(step.after for step in cell.events):
            # Few cells have any; what a guest loads moves what happens in it.
            from scpslab.lab.instants import Instants  # noqa: PLC0415

            written = [getattr(one, "records", None) for one in (self.events, *self.probes, *self.workloads)]
            self.instants = Instants(self.context, cell.events, written)
        for direction in self.network.directions:
            for t_ns, delay_ns in (direction.plan.delay_table or ())[1:]:
                self._schedule_delay(direction, t_ns, delay_ns)

    def to_its_end(self) -> Status:
        """Waits until the workloads are over, ends everything, and closes the accounts."""
        in_time = self.loop.run_until(self._is_over, self.limit_ns)
        status, reason = self._outcome(in_time)
        given_up = next((one for one in self.required if reason and one.reason == reason), None)
        self.lab.phase("stop")
        end_ns = Context.now_ns()
        overload = self.pace.stop() if self.pace else ""
        self._stop_workloads()
        for service in reversed(self.ready_ns):
            service.end(STOP_LIMIT_NS)
            service.write_records(self.lab.folders.records)
        accounts = Accounts(self.context)
        drained = accounts.drain()
        for link in self.lab.serial_links:
            link.settle(self.context.rest)
        self._close_workloads()
        if given_up:
            # One that was told to end may have said since then what it lacked.
            reason = given_up.reason
        for router in self.prepared.routers:
            router.end(STOP_LIMIT_NS)
            router.write_records(self.lab.folders.records)
        self.context.rest(max((probe.settle_ns for probe in self.probes), default=0))
        for probe in self.probes:
            probe.stop()
            overload = overload or probe.broken
        self._close_lines()
        still_open = accounts.write()
        too_many = self._write_packets() if self.prepared.plan.cell.packets else ""
        if still_open:
            status, reason = "failed", OPEN + "; ".join(still_open)
        elif overload or too_many:
            status, reason = "failed", overload or too_many
        elif not drained and status == "completed":
            reason = "packets were still under way at the end"
        self._write_log()
        self.context.live.write()
        return Status(status, reason, self.context.epoch.realtime_ns, self.context.epoch.t_s(end_ns))

    def _write_packets(self) -> str:
        """Writes the record of packets and what senders knew; says why that has no room."""
        records, epoch = self.lab.folders.records, self.context.epoch
        write_scps_states(records / SCPS_STATES, scps_end.states(self.network), epoch.realtime_ns)
        for one in self.ready_ns:
            write_scps_states(records / file_name(one.name, suffix=GATEWAY_STATES), [one.states()], epoch.realtime_ns)
        # A second reading of both clocks would find them a little further apart, where time is real.
        return self.network.stages.write_packets(records, self.network.owners, epoch.monotonic_ns(0))

    def _schedule_delay(self, direction: DirectionStages, t_ns: int, delay_ns: int) -> None:
        def change() -> None:
            self.network.change_delay(direction, self.prepared.settled.delay_options(direction, delay_ns))

        self.loop.at(self.context.epoch.realtime_ns + t_ns, change)

    def _is_over(self) -> bool:
        if self.events.reason or self.events.broken or self.prepared.services.broken:
            return True
        if self.instants and self.instants.are_due:
            return True
        required = self.required
        if any(workload.outcome in GIVEN_UP for workload in required):
            return True
        return all(workload.outcome for workload in required) and self.events.done()

    def _outcome(self, in_time: bool) -> tuple[str, str]:
        if not in_time:
            return "failed", f"the virtual limit of {self.limits.virtual_s} s came before the workloads were over"
        if broken := self.events.broken or self.prepared.services.broken or (self.instants and self.instants.broken):
            return "failed", broken
        for workload in self.required:
            if workload.outcome in GIVEN_UP:
                return workload.outcome, workload.reason
        if self.events.reason:
            return "incomplete", self.events.reason
        return "completed", ""

    def _begin(self, workload: workloads.Workload[Any]) -> None:
        """A workload whose time comes after the cell is over, while packets are under way, does not begin."""
        if not self.is_stopping:
            workload.begin()

    def _stop_workloads(self) -> None:
        self.is_stopping = True
        for workload in self.workloads:
            workload.stop()
        self.events.stop()
        self.loop.run_until(
            lambda: all(w.quiet() for w in self.workloads) and self.events.ended(), Context.now_ns() + STOP_LIMIT_NS
        )

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
        self.events.close()
        if self.instants:
            self.instants.close()

    def _close_lines(self) -> None:
        for link in self.lab.serial_links:
            routers = [router for router in self.prepared.routers if link.name in router.counted]
            link.close(self.lab.folders.records, {router.node: router.counted[link.name] for router in routers})

    def _write_log(self) -> None:
        log, epoch = self.lab.log, self.context.epoch
        log.write(event="epoch", realtime_ns=epoch.realtime_ns)
        for name, realtime_ns in self.lab.phases:
            log.write(event="phase", name=name, t_s=epoch.t_s(realtime_ns))
        for service, ready_ns in self.ready_ns.items():
            log.write(event="service", name=service.name, node=service.node, ready_t_s=epoch.t_s(ready_ns))
        for workload in self.workloads:
            outcome = workload.outcome or "stopped"
            log.write(event="workload", name=workload.name, outcome=outcome, reason=workload.reason)
        log.close()


def finish(status: Status) -> None:
    """Copies what the cell wrote to the user's machine, its status last."""
    for source in sorted(WORK.rglob("*")):
        target = CELL / OUT / source.relative_to(WORK)
        if source.is_file():
            if source.suffix == ".log":
                keep_end(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    (CELL / OUT).mkdir(exist_ok=True)
    (CELL / OUT / "status.json").write_text(status.text())
