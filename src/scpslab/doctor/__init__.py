"""Checks of this machine, made before anything starts: one function per check, one line in CHECKS."""

from scpslab.doctor.finding import Finding
from scpslab.doctor.machine import CHECKS, examine

__all__ = ["CHECKS", "Finding", "examine"]
