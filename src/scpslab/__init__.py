"""A satellite-network laboratory: scenario file → plan → engine → records → results → figures, in that order of
reading.
"""

import scpslab.kinds
