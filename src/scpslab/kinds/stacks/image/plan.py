"""Stack `image` in a plan: whatever an image of somebody's carries."""

from scpslab.plan.stacks import IMAGE, STACKS

STACKS.register("image", IMAGE)
