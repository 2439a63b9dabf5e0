"""What this machine can do, found out before anything starts: one check a function, one line in CHECKS."""

from scpslab.doctor.finding import Finding
from scpslab.doctor.machine import CHECKS, examine

__all__ = ["CHECKS", "Finding", "examine"]
