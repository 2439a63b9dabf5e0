"""Stack `patient-kernel` in a plan."""

from scpslab.plan.stacks import KERNEL

KIND = KERNEL
