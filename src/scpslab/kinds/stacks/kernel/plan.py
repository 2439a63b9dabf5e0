"""Stack `kernel` in a plan: the kernel's TCP."""

from scpslab.plan.stacks import KERNEL

KIND = KERNEL
