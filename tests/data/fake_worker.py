"""A preload for `dask worker` (PYTHONPATH: this folder): an engine that starts no lab, as honest, fast and healthy as
its environment says.
"""

from __future__ import annotations

import copyreg
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from scpslab.engine import ENGINES, CellSample
from tools.no_lab import NoLab


class FakeElsewhere(NoLab):
    """FAKE_S: seconds of a cell; FAKE_HASH: the engine's hash; FAKE_LIE: what cells say; FAKE_PLAN: they have
    another.
    """

    memory = Path(os.environ["FAKE_MEMORY"])

    def hash(self, plan):
        return os.environ.get("FAKE_HASH", super().hash(plan))

    def run(self, cell):
        cell.hear(CellSample(0.5, cell.plan.cell.workloads[0].name, {"state": "started"}))
        time.sleep(float(os.environ.get("FAKE_S", "0")))
        status = super().run(cell)
        if lie := os.environ.get("FAKE_LIE"):
            status = replace(status, reason=lie)
            (cell.folder / "status.json").write_text(status.text())
        if "FAKE_PLAN" in os.environ:
            plan = cell.folder / "plan.json"
            plan.write_text(plan.read_text().replace('"payload_seed": ', '"payload_seed": 1'))
        with (self.memory / "ran").open("a") as file:
            file.write(f"{cell.plan.cell.id}\n")
        return status


def evil(_thing):
    """What pickles say of an object, or of its class: a program that writes a file where it is loaded, the worker
    itself excepted.
    """
    return eval, (f"'FAKE_MEMORY' in __import__('os').environ or open({os.environ['FAKE_EVIL_FILE']!r}, 'w').close()",)


class Evil(metaclass=type("Kind", (type,), {})):
    """Dask sends the class of an answer, too."""

    __reduce__ = evil


copyreg.pickle(type(Evil), evil)


def answer(_order):
    return Evil()


def evil_error(_order):
    raise RuntimeError(Evil())


def evil_message(error, status="error"):
    from distributed.protocol import to_serialize  # the extra dask

    return {
        "status": status,
        "exception": to_serialize(Evil()),
        "traceback": None,
        "exception_text": "",
        "traceback_text": "",
    }


ENGINES["virtual"] = FakeElsewhere
if how := os.environ.get("FAKE_EVIL"):
    from distributed import worker

    from scpslab.running import dask

    dask._carry_out = answer if how == "answer" else evil_error
    if how == "message":
        worker.error_message = evil_message
