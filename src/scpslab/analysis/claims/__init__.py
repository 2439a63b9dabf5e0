"""Claims: the findings of the papers, tested against runs.

Order of reading: model.py (the form of a file), load.py, evidence.py (rows of runs), measured.py (checks),
evaluate.py (verdicts), scoreboard.py (counts and tables).
"""

from scpslab.analysis.claims.evaluate import Outcome, Verdict, evaluate
from scpslab.analysis.claims.evidence import Evidence
from scpslab.analysis.claims.load import QUESTIONS, Paper, load, load_all, load_beside
