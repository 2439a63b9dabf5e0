"""The Python interface, as the example uses it."""

import json
import shutil
import subprocess
import sys

import pytest

from scpslab import api
from scpslab.core.project import ROOT

EXAMPLE = ROOT / "examples" / "noisy.py"


@pytest.fixture(scope="module")
def noisy(engine, tmp_path_factory):
    """The folder that the example runs in, and what it says."""
    out = tmp_path_factory.mktemp("noisy")
    words = [sys.executable, EXAMPLE, out]
    return out, subprocess.run(words, capture_output=True, text=True, check=True, timeout=300).stdout.splitlines()


def test_the_example_plans_runs_and_counts(noisy):
    out, said = noisy
    assert said[0] == "18 cells"
    assert len(said) == 7
    (folder,) = out.glob("noisy-*")
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


def test_the_notebook_says_what_the_example_says(noisy, tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    out, said = noisy
    book = json.loads(EXAMPLE.with_suffix(".ipynb").read_text())
    shutil.copy(EXAMPLE.with_suffix(".yaml"), tmp_path)
    (tmp_path / "runs").symlink_to(out)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)  # noqa: S102  # the notebook is ours
    means = names["done"].groupby(["stack", "ber"])["transfer_s"].mean()
    assert {f"{mean:.3f}" for mean in means} == {line.split()[3] for line in said[1:]}
    assert names["fates"]["forward", "corrupt"] > 0


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_the_script_in_r_reads_the_run(noisy, tmp_path):
    (folder,) = noisy[0].glob("noisy-*")
    words = ["Rscript", EXAMPLE.with_suffix(".R"), folder]
    said = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60, cwd=tmp_path).stdout
    assert "18 of 18 cells completed" in said
    assert (tmp_path / "transfer.png").stat().st_size > 1000


def test_the_workflow_calls_commands_that_there_are():
    said = EXAMPLE.with_name("continuous-integration.yaml").read_text()
    calls = [line.split("v/bin/scpslab ")[1].split()[0] for line in said.splitlines() if "v/bin/scpslab " in line]
    assert calls == ["run", "verify", "report"]
