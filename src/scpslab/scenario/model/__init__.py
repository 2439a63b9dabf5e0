"""What a scenario file may say: strict and frozen, unknown keys refused, units mandatory.

Begin with scenario_file.py.
"""

from scpslab.documents.parts import Part
from scpslab.scenario.model.links import DelayStep, Direction, Errors, Outage, Queue
from scpslab.scenario.model.scenario_file import Check, Limits, RouterSettings, ScenarioFile, Variant
from scpslab.scenario.model.script import LinkStep, RunStep, Step
from scpslab.scenario.model.sweep import Axis, Cases, Values
from scpslab.scenario.probes import Probe
from scpslab.scenario.workloads import Workload

__all__ = [
    "Axis",
    "Cases",
    "Check",
    "DelayStep",
    "Direction",
    "Errors",
    "Limits",
    "LinkStep",
    "Outage",
    "Part",
    "Probe",
    "Queue",
    "RouterSettings",
    "RunStep",
    "ScenarioFile",
    "Step",
    "Values",
    "Variant",
    "Workload",
]
