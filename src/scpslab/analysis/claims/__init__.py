"""Claims: the findings of the papers, tested against runs.

Order of reading: model.py (the form of a file), measured.py (rows of runs, and what checks measure in them), load.py,
scoreboard.py (verdicts, their counts and tables).
"""

from scpslab.analysis.claims.load import QUESTIONS, Paper, load, load_all, load_beside
from scpslab.analysis.claims.measured import Evidence
from scpslab.analysis.claims.scoreboard import Outcome, Verdict, evaluate
