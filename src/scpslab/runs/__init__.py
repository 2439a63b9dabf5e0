"""The folders of runs: states the name of every file in them once, and reads and writes the files that say how a run
went.

Order of reading: cell.py (one cell), run.py (a run, a campaign), find.py (from words to folders), lock.py (one process
at a time). docs/results.md and docs/plan-format.md explain the files. scpslab.analysis reads what happened in a cell.
"""

from scpslab.runs.cell import STATUSES, CellFiles
from scpslab.runs.find import find_run, is_campaign, runs_of
from scpslab.runs.lock import held
from scpslab.runs.reading import AGAIN, FORMAT
from scpslab.runs.run import CampaignFolder, RunFolder

__all__ = [
    "AGAIN",
    "FORMAT",
    "STATUSES",
    "CampaignFolder",
    "CellFiles",
    "RunFolder",
    "find_run",
    "held",
    "is_campaign",
    "runs_of",
]
