"""The folders of runs: states the name of every file in them once, and reads and writes the files that say how a run
went.

Order of reading: run.py (a cell, a run, a campaign, their lock, and from words to folders).
docs/results.md and docs/plan-format.md explain the files. scpslab.analysis reads what happened in a cell.
"""

from scpslab.runs.run import (
    AGAIN,
    FORMAT,
    STATUSES,
    CampaignFolder,
    CellFiles,
    RunFolder,
    find_run,
    held,
    is_campaign,
    runs_of,
)
