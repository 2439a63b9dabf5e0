"""What this machine can do, found out before anything starts: one check a function, one line in CHECKS."""

from scpslab.doctor.checks import CHECKS, examine
from scpslab.doctor.finding import Finding

__all__ = ["CHECKS", "Finding", "examine"]
