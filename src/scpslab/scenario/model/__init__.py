"""What a scenario file may say: strict and frozen, unknown keys refused, units mandatory. Begin with scenario_file.py."""

from scpslab.documents.parts import Part
from scpslab.scenario.model.links import DelayStep, Direction, Errors, Outage, Queue
from scpslab.scenario.model.probes import Capture, Probe, QueueDepth, TcpInfo, Verdicts
from scpslab.scenario.model.scenario_file import Check, Limits, ScenarioFile, Variant
from scpslab.scenario.model.script import LinkStep, RunStep, Step
from scpslab.scenario.model.sweep import Axis, Cases, Values
from scpslab.scenario.model.workloads import Bulk, CongestionTraffic, Endpoint, Fp, Ftp, Iperf3, Ping, Workload

__all__ = [
    "Axis",
    "Bulk",
    "Capture",
    "Cases",
    "Check",
    "CongestionTraffic",
    "DelayStep",
    "Direction",
    "Endpoint",
    "Errors",
    "Fp",
    "Ftp",
    "Iperf3",
    "Limits",
    "LinkStep",
    "Outage",
    "Part",
    "Ping",
    "Probe",
    "Queue",
    "QueueDepth",
    "RunStep",
    "ScenarioFile",
    "Step",
    "TcpInfo",
    "Values",
    "Variant",
    "Verdicts",
    "Workload",
]
