"""Claims: what the papers found, and whether the runs here show it.

Order of reading: model.py (what a file says), load.py, evidence.py (rows of runs), numbers.py and relations.py (checks), evaluate.py
(verdicts), scoreboard.py (counts and tables).
"""

from scpslab.claims.evaluate import Outcome, Verdict, evaluate
from scpslab.claims.evidence import Evidence
from scpslab.claims.load import QUESTIONS, Paper, load_all

__all__ = ["QUESTIONS", "Evidence", "Outcome", "Paper", "Verdict", "evaluate", "load_all"]
