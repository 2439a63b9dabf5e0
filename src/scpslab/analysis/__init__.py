"""Results: from the raw files of a run to one table and its statistics.

Order of reading: run.py (the folder, and what of a plan says where to look), capture.py and traces.py (packets),
metrics/ (one cell), collect.py (results.csv, its rows kept), statistics.py and table.py (means), checks.py (what a
scenario asks of its results). Then what is made of them: effects.py and compare.py, lost_packets.py, claims/, figures/,
report.py. All that commands show is a Report (output.py).
"""

from scpslab.analysis import table
from scpslab.analysis.collect import Row, Rows, collect, derived
from scpslab.analysis.run import open_cell
