"""Stack `kernel` in a plan: the kernel's TCP."""

from scpslab.plan.stacks import KERNEL, STACKS

STACKS.register("kernel", KERNEL)
