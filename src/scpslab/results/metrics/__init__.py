"""Metrics: one small file a family, whose name the kinds of workload that it measures have (scpslab.workloads). Their order is that of the columns."""

from importlib import import_module
from typing import Any

from scpslab.results.metrics import losses, np, serial, sp
from scpslab.results.metrics.base import Column, Family, Subject, Value
from scpslab.workloads import KINDS

FAMILIES: tuple[Family[Any], ...] = tuple(import_module(f"{__name__}.{name}").FAMILY for kind in KINDS.values() for name in kind.families)

__all__ = ["FAMILIES", "Column", "Family", "Subject", "Value", "losses", "np", "serial", "sp"]
