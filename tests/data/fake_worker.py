"""A preload for `dask worker` (PYTHONPATH: this folder): an engine that starts no lab, as honest, fast and healthy as its environment says."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from run_with_fake_engine import Fake

from scpslab.engine import ENGINES


class FakeElsewhere(Fake):
    """FAKE_S: seconds of a cell; FAKE_HASH: the engine's hash; FAKE_LIE: what cells say."""

    memory = Path(os.environ["FAKE_MEMORY"])

    def hash(self, plan):
        return os.environ.get("FAKE_HASH", "fake")

    def run(self, cell):
        time.sleep(float(os.environ.get("FAKE_S", "0")))
        status = super().run(cell)
        if lie := os.environ.get("FAKE_LIE"):
            status |= {"reason": lie}
            (cell.folder / "status.json").write_text(json.dumps(status))
        with (self.memory / "ran").open("a") as file:
            file.write(f"{cell.plan.cell.id}\n")
        return status


ENGINES["virtual"] = FakeElsewhere
