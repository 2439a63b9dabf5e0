"""The SCPS reference implementation as a host, beside our stack and against it. It needs a copy of its source: SCPSLAB_RI_SOURCE."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from scpslab.engine import ENGINES
from scpslab.results.run import open_run
from scpslab.results.table import read_results
from scpslab.running import RunOptions, run_scenario
from scpslab.setup import reference
from scpslab.setup.images import ensure
from scpslab.version import version
from tests.lab.guest_machine import HostInGuest

SOURCE = os.environ.get("SCPSLAB_RI_SOURCE")
pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(not SOURCE, reason="SCPSLAB_RI_SOURCE names no copy of the reference implementation's source (images/scps-ri/README.md)"),
]
SCENARIO = "links/interop-ri:test"
RI, OURS = f"scpslab/scps-ri:{version()}", f"scpslab/scps-host:{version()}"


@pytest.fixture(scope="module", autouse=True)
def image():
    """The image, built from the user's copy."""
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
        pytest.skip("no Docker Engine here to build the image with")
    ensure(lambda _text: None, with_docker=True)
    return reference.build(Path(SOURCE or ""), lambda _text: None)


def one(out, sender, receiver, options, *overrides):
    """The row and the folder of one cell."""
    words = [f"hosts.h1.image={sender}", f"hosts.h2.image={receiver}", f'hosts.*.options="--protocol 106 {options}"', *overrides]
    result = run_scenario(SCENARIO, RunOptions(out=out, overrides=["sweep={}", *words], jobs=1, use_cache=False))
    (row,) = read_results(result.folder).rows
    (cell,) = open_run(result.folder).cells
    return row, cell.folder


def test_the_image_says_that_it_works():
    done = subprocess.run(
        ["docker", "run", "--rm", "--init", "--network", "none", "--env", "SCPSLAB_ROLE=check", RI], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_both_implementations_understand_each_other_with_losses(tmp_path):
    """Both directions of the scenario's variant: every byte arrives, and the lossy hop took some packets."""
    result = run_scenario(SCENARIO, RunOptions(out=tmp_path, jobs=1))
    rows = read_results(result.folder).rows
    assert [(row["pair"], row["status"], row["bytes"]) for row in rows] == [("ours-to-ri", "completed", "200000"), ("ri-to-ours", "completed", "200000")]


def test_files_pass_between_both_file_protocols_whole_and_from_where_a_transfer_ended(tmp_path):
    result = run_scenario("links/interop-ri-files:test", RunOptions(out=tmp_path, jobs=1))
    rows = read_results(result.folder).rows
    assert [(row["status"], row["bytes"]) for row in rows] == [("completed", "200000")] * 8


def test_each_end_hears_of_the_others_end(tmp_path):
    """Exit codes of sender and receiver, and when they ended: an RST answers a SYN after half a second, and reaches the other end after a quarter."""
    result = run_scenario("links/interop-ri-ends:test", RunOptions(out=tmp_path, jobs=1))
    ends = {}
    for cell in open_run(result.folder).cells:
        steps = {line["step"]: line for line in cell.records("script")}
        ends[cell.plan.cell.id.removeprefix("case=").removesuffix(",r1")] = (
            *(steps[step]["exit_code"] for step in (2, 1)),
            *(steps[step]["end_t_s"] for step in (2, 1)),
        )
    codes = {case: end[:2] for case, end in ends.items()}
    assert codes == {
        "ri-finds-no-listener": (1, 1),
        "ours-resets-while-sending": (143, 1),
        "ours-resets-while-receiving": (1, 143),
        "ours-half-closed": (0, 0),
        "ri-half-open": (0, 0),
    }
    assert ends["ri-finds-no-listener"][2] == pytest.approx(1.5, abs=0.01)
    assert ends["ours-resets-while-receiving"][2] == pytest.approx(4.25, abs=0.02)
    assert 4.25 < ends["ours-resets-while-sending"][3] < 4.5


def test_a_wrong_byte_would_be_noticed(tmp_path):
    """The ends take different seeds here, as if every byte had changed on the way: the receiver is not content."""
    command = ["docker", "run", "--rm", "--init", "--network", "none", "--entrypoint", "sh", RI, "-c"]
    script = (
        "export SCPSLAB_BYTES=50000 SCPSLAB_PATIENCE_S=20; "
        "SCPSLAB_SEED=2 SCPSLAB_ADDRESS=127.0.0.2 SCPSLAB_ROLE=receive endpoint & receiver=$!; sleep 0.5; "
        "SCPSLAB_SEED=1 SCPSLAB_ADDRESS=127.0.0.1 SCPSLAB_PEER=127.0.0.2 SCPSLAB_ROLE=send endpoint; wait $receiver"
    )
    done = subprocess.run([*command, script], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert '"bytes": 50000, "wrong_bytes": 4' in done.stdout


def test_the_length_of_its_idle_wait_changes_nothing(tmp_path):
    """A tenth of its clock's tick and a hundred ticks: times agree to a millisecond, and so do the packets' numbers."""
    rows = [
        one(tmp_path / length, RI, RI, f"--rate 2000000 --buffer 400000 --congestion none --idle-us {length}", "links.hop.data.errors.ber=1e-5")[0]
        for length in ("1000", "1000000")
    ]
    assert [row["status"] for row in rows] == ["completed", "completed"]
    assert float(rows[0]["transfer_s"]) == pytest.approx(float(rows[1]["transfer_s"]), abs=1e-3)


def test_the_same_cell_gives_the_same_packets(tmp_path):
    """Its clock, its sequence numbers and the order of its packets belong to the cell: two runs with losses have the same capture."""
    folders = [one(tmp_path / run, RI, RI, "--rate 2000000 --buffer 400000 --congestion none", "links.hop.data.errors.ber=1e-5")[1] for run in ("a", "b")]
    captures = [(folder / "captures/h2.pcap").read_bytes() for folder in folders]
    assert captures[0] == captures[1]
    assert len(captures[0]) > 20_000


@pytest.mark.parametrize("engine", ["live", HostInGuest.name])
def test_with_real_time_it_is_a_host_too(tmp_path, monkeypatch, engine):
    """Engines `live` and `host`; a busy machine may be late here, for only bytes and that it works are looked at."""
    monkeypatch.setitem(ENGINES, HostInGuest.name, HostInGuest)
    overrides = ["sweep={}", "limits.lateness=10 s", f"hosts.h1.image={RI}", f"hosts.h2.image={RI}"]
    result = run_scenario(SCENARIO, RunOptions(engine=engine, out=tmp_path, overrides=overrides, jobs=1))
    (row,) = read_results(result.folder).rows
    assert (row["reason"], row["status"], row["bytes"]) == ("", "completed", "200000")


def test_a_setting_that_it_lacks_is_unsupported(tmp_path):
    row, _folder = one(tmp_path, RI, OURS, "--sack true")
    assert row["status"] == "unsupported"
