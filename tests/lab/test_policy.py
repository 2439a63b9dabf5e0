"""Policies: somebody's code decides what is sent. Right ones are measured, wrong ones named, hostile ones harmless."""

import json
import textwrap
from pathlib import Path

import pytest

from scpslab.running.verify import contradictions
from scpslab.runs import archive
from tests import golden
from tests.lab.ran import Cell, Ran

SCENARIO = """
links:
  hop:
    forward: {rate: 1 Mbit/s, delay: 100 ms, errors: {model: independent, ber: 3e-5}}
    return: {delay: 100 ms}
workloads:
  - {kind: policy, name: transfer, policy: policy_0.py, from: h1, to: h2, size: 20 kB, timeout: 60 s}
probes:
  - {kind: capture, node: h1}
limits: {wall_time: 20 s}
"""
STOP_AND_WAIT = (Path(__file__).parents[1] / "same_bytes" / "stop_and_wait.py").read_text()
BEGIN = """
class Policy:
    def __init__(self, segments, packet_bytes):
        self.segments = segments
    def on_ack(self, now, ack):
        return [], None
    def on_timer(self, now):
        return list(range(self.segments)), now + 1.0
"""
# What a policy does at the start.
WRONG = {name: does for _, (name, does) in golden.rows("wrong policy", 2)}


CODE = {
    name: BEGIN + textwrap.indent(f"def on_start(self, now):\n    {does}\n    return [], None\n", "    ")
    for name, does in WRONG.items()
}
CODE["an answer before it was asked"] = (
    'import os\nos.write(1, b\'{"send": [0], "wake": null}\\n\')\n' + CODE["silence"]
)
CODE["right"] = STOP_AND_WAIT
CODE["an endless loop"] = BEGIN + "    def on_start(self, now):\n        while True: pass\n"
FILES = {name: f"policy_{number}.py" for number, name in enumerate(CODE)}


@pytest.fixture(scope="module")
def ran(run_once) -> Ran:
    """A run with a cell of every policy."""
    for name, code in CODE.items():
        (run_once.folder / FILES[name]).write_text(code)
    files = json.dumps(list(FILES.values()))
    return run_once(f"{SCENARIO}sweep: {{policy: {{set: [workloads.transfer.policy], values: {files}}}}}\n")


@pytest.fixture(scope="module")
def cells(ran) -> dict[str, Cell]:
    """The cells by what their policies do."""
    by_file = ran.by("policy")
    return {name: by_file[file] for name, file in FILES.items()}


def test_a_policy_moves_every_byte_and_what_it_sent_is_counted(ran, cells):
    row = next(row for row in ran.rows if row["policy"] == FILES["right"])
    account = cells["right"].account()

    assert (row["status"], row["bytes"]) == ("completed", "20000")
    # One round trip of 200 ms for each of 21 segments.
    assert float(row["transfer_s"]) > 21 * 0.2
    assert int(row["sent_packets"]) == account["offered_packets"] == 21 + int(row["resent_packets"])
    assert int(row["resent_packets"]) == account["corrupt_packets"] > 0
    assert float(row["efficiency"]) == pytest.approx(21 / int(row["sent_packets"]))


@golden.each("wrong policy", "case name does")
def test_a_wrong_or_hostile_policy_ends_its_own_transfer_and_nothing_else(case, cells, name, does):
    assert cells[name].status == "incomplete", does
    case.hold(cells[name].reason.replace(FILES[name], "policy.py"))


def test_no_program_that_a_policy_might_start_has_more_rights(run, tmp_path):
    (tmp_path / "policy_0.py").write_text(CODE["silence"])
    python = "tr '\\0' ' ' < $process/cmdline | grep -q '^python3.*policy_runner'"
    looks = f"for process in /proc/[0-9]*; do if {python}; then grep NoNewPrivs $process/status; fi; done"
    script = f"events:\n  - {{at: 1 s, node: h1, command: {json.dumps(looks)}}}\n"
    cell = run(SCENARIO + script, "workloads.transfer.timeout=5 s").cell

    logs = "".join(path.read_text() for path in cell.folder.rglob("*.log"))
    assert "NoNewPrivs:\t1" in logs
    assert "NoNewPrivs:\t0" not in logs


def test_a_policy_that_never_answers_ends_at_the_wall_limit(cells):
    assert cells["an endless loop"].status == "failed"
    assert "wall" in cells["an endless loop"].reason


def test_an_archive_has_the_policies_within_its_plans(ran, tmp_path: Path):
    archive.write_archive([ran.folder], tmp_path / "run.scpslab.tar.gz")
    (archived,) = archive.read_archive(tmp_path / "run.scpslab.tar.gz")

    assert contradictions(archived) == []
