"""Stack `eager-scps` in a plan."""

from scpslab.plan.stacks import SCPS, STACKS

STACKS.register("eager-scps", SCPS)
