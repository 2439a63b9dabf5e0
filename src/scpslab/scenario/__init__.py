"""Scenarios: from a YAML file to cells.

Order of reading: model.py (what a file may say), load.py, survey.py, consistency.py, cells.py.
"""

from scpslab.scenario.cells import Cell, cells
from scpslab.scenario.load import Scenario, load, names, resolved_yaml
from scpslab.scenario.recorded import OwnFiles, own_files
