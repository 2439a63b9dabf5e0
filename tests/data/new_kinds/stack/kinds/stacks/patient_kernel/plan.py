"""Stack `patient-kernel` in a plan."""

from scpslab.plan.stacks import KERNEL, STACKS

STACKS.register("patient-kernel", KERNEL)
