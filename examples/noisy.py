"""Runs a sweep from Python, and says what each stack lost and how long it took. `pandas.DataFrame(rows)` works too.

python examples/noisy.py [OUT]
"""

import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean

from scpslab import api

SCENARIO = Path(__file__).with_name("noisy.yaml")
OUT = sys.argv[1] if len(sys.argv) > 1 else "runs"

print(len(api.plan(SCENARIO)), "cells")
folder = api.run(SCENARIO, out=OUT)
groups = defaultdict(list)
for row in api.rows(folder):
    if row["status"] == "completed":
        groups[row["stack"], row["ber"]].append(row)
for (stack, ber), cells in groups.items():
    lost = 0
    for cell in cells:
        lost += sum(packet["fate"] != "delivered" for packet in api.packets(folder, cell["cell"]))
    print(f"{stack:6} ber {ber:<7g} {mean(cell['transfer_s'] for cell in cells):7.3f} s, {lost} packets lost")
