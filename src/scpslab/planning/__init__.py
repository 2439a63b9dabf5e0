"""Planning: from a cell to the plan that the lab program carries out (docs/plan-format.md)."""

from scpslab.planning.alike import warnings
from scpslab.planning.cost import Cost
from scpslab.planning.doubts import doubts
from scpslab.planning.estimate import Expected, expected, least_virtual_s
from scpslab.planning.flows import open_choices, paths_text, short_paths
from scpslab.planning.plan import plan

__all__ = ["Cost", "Expected", "doubts", "expected", "least_virtual_s", "open_choices", "paths_text", "plan", "short_paths", "warnings"]
