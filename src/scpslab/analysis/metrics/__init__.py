"""Metrics: one small file a family, whose name the kinds of workload that it measures have
(scpslab.scenario.workloads). Their order is that of the columns.
"""

from importlib import import_module
from typing import Any

from scpslab.analysis.metrics import losses, np, serial, sp
from scpslab.analysis.metrics.base import Column, Family, Subject, Value
from scpslab.scenario.workloads import KINDS


def _family(name: str) -> Family[Any]:
    """A family of metrics: a kind's own is in its folder, those of several kinds are here."""
    module = f"scpslab.kinds.workloads.{name}.metrics" if name in KINDS else f"{__name__}.{name}"
    found: Family[Any] = import_module(module).FAMILY
    return found


FAMILIES: tuple[Family[Any], ...] = tuple(_family(name) for kind in KINDS.values() for name in kind.families)

__all__ = ["FAMILIES", "Column", "Family", "Subject", "Value", "losses", "np", "serial", "sp"]
