"""The Python interface, as the example uses it."""

import subprocess
import sys

import pytest

from scpslab import api
from scpslab.core.project import ROOT

EXAMPLE = ROOT / "examples" / "noisy.py"


def test_the_example_plans_runs_and_counts(engine, tmp_path):
    words = [sys.executable, EXAMPLE, tmp_path]
    said = subprocess.run(words, capture_output=True, text=True, check=True, timeout=300).stdout.splitlines()
    assert said[0] == "18 cells"
    assert len(said) == 7
    (folder,) = tmp_path.glob("noisy-*")
    (row, *_), known = api.rows(folder), api.plan(EXAMPLE.with_suffix(".yaml"))
    assert (row["repeat"], row["ber"], row["payload_match"], row["superfluous_resends"]) == (1, 0, True, None)
    assert row["cell"] in known
    sent = [packet for packet in api.packets(folder, row["cell"]) if packet["direction"] == "forward"]
    assert sum(packet["payload_bytes"] for packet in sent) >= row["bytes"]
    assert 0 <= sent[0]["offered_s"] < sent[0]["arrived_s"]
    with pytest.raises(api.ScpslabError, match="found no cell"):
        api.packets(folder, "r9")
    with pytest.raises(api.ScpslabError, match="sweep.ber"):
        api.plan(EXAMPLE.with_suffix(".yaml"), "sweep.ber=[2]")
