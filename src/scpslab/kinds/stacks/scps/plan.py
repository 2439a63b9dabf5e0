"""Stack `scps` in a plan: SCPS-TP, by the `scps` program."""

from scpslab.plan.stacks import SCPS, STACKS

STACKS.register("scps", SCPS)
