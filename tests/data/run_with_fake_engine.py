"""`scpslab run` with an engine that starts no lab: `run_with_fake_engine.py MEMORY HOLD run …`.

At cell number HOLD (0: never) it says "holding" and waits for a line. Its scratch folders are in MEMORY, as those of
the lab kernel are in /dev/shm.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from scpslab.cli import app
from scpslab.running import runner
from tools.no_lab import NoLab


class Fake(NoLab):
    """Holds where it is told to."""

    hold, started = 0, 0

    def half_done(self):
        """Says so at the cell where it holds, and waits."""
        Fake.started += 1
        if Fake.started == Fake.hold:
            print("holding", flush=True)
            sys.stdin.readline()


if __name__ == "__main__":
    Fake.memory, Fake.hold = Path(sys.argv[1]), int(sys.argv[2])
    runner.ENGINES["virtual"] = Fake
    runner.places = lambda: (Fake.memory,)
    sys.argv = ["scpslab", *sys.argv[3:]]
    app.main()
