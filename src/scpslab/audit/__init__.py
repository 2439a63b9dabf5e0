"""A second model of the links, which explains every packet of a cell's record, or names the first one that it cannot.

It shares no line with the lab that it judges: it knows the plan, the vectors as drawn, and the record.
"""

from __future__ import annotations

from scpslab.audit.cell import unexplained as unexplained
