"""Scenarios: from a YAML file to cells.

Order of reading: model/ (what a file may say), load.py, consistency.py, resolve.py, cells.py.
"""

from scpslab.scenario.cells import Cell, cells
from scpslab.scenario.load import Scenario, load, names
from scpslab.scenario.recorded import OwnFiles, own_files
from scpslab.scenario.renamed import current_name
from scpslab.scenario.resolve import resolved_yaml

__all__ = ["Cell", "OwnFiles", "Scenario", "cells", "current_name", "load", "names", "own_files", "resolved_yaml"]
