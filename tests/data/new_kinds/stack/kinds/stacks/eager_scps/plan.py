"""Stack `eager-scps` in a plan."""

from scpslab.plan.stacks import SCPS

KIND = SCPS
