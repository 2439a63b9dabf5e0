"""Planning: from a cell to the plan that the lab program carries out (docs/plan-format.md)."""

from scpslab.scenario.planning.doubts import doubts, warnings
from scpslab.scenario.planning.drawing import YOURS, Own, drawing
from scpslab.scenario.planning.estimate import Cost, Expected, expected, least_virtual_s
from scpslab.scenario.planning.flows import open_choices, paths_text, short_paths
from scpslab.scenario.planning.plan import plan, plans
