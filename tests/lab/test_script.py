"""Links that change while traffic flows, and commands that are typed."""

from __future__ import annotations

import json

import pytest

from scpslab.analysis.run import open_run
from tests.lab.conftest import run_text

pytestmark = pytest.mark.lab
SCENARIO = """
kind: scenario
version: 1
title: A link that changes
topology: point_to_point
script:
- {do: run, at: 1 s, node: h2, command: "iperf3 -s -1", required: false}
- {do: run, at: 2 s, node: h1, command: "iperf3 -c 10.0.0.2 -u -b 1M -l 1000 -t 40 --json > /dev/null"}
- {do: link, at: 10 s, link: hop, direction: data, ber: 1e-5}
- {do: link, at: 20 s, link: hop, direction: data, ber: 0}
- {do: link, at: 20 s, link: hop, direction: data, state: down}
- {do: link, at: 25 s, link: hop, direction: data, state: up}
- {do: link, at: 30 s, link: hop, direction: data, rate: 500 kbit/s}
- {do: link, at: 36 s, link: hop, direction: data, rate: 2 Mbit/s}
- {do: link, at: 36 s, link: hop, direction: data, delay: 50 ms}
probes:
- {kind: capture, node: h2}
"""


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    """The one cell of the scenario."""
    result = run_text(tmp_path_factory.mktemp("script"), SCENARIO)
    assert (result.completed, result.failed) == (1, 0)
    return next(iter(open_run(result.folder).cells))


def test_every_change_takes_effect_when_it_is_made_and_no_other(cell):
    """1 Mbit/s of 1028 bytes on IP is 125 packets a second: 10 s at 1e-5 lose 8 % by errors, 5 s down lose 625 as
    outage, and the accounts close.
    """
    account = next(line for line in cell.records("accounting") if line["direction"] == "data")
    packets = 125 * 10
    expected = packets * (1 - (1 - 1e-5) ** (8 * 1028))

    assert account["closes"]
    assert abs(account["corrupt_packets"] - expected) < 4 * expected**0.5
    assert account["outage_packets"] == pytest.approx(625, abs=3)
    assert account["queue_packets"] > 0  # at half the rate for 6 s, the queue overflows


def test_the_script_s_own_record_says_what_was_done_when(cell):
    """Seven changes at their times, both commands with their exit codes."""
    lines = cell.records("script")
    changes = [(round(line["t_s"]), line["change"]) for line in lines if "change" in line]

    assert changes == [
        (10, "ber"),
        (20, "ber"),
        (20, "state"),
        (25, "state"),
        (30, "rate"),
        (36, "rate"),
        (36, "delay"),
    ]
    codes = {line["step"]: line["exit_code"] for line in lines if "command" in line}
    assert codes[2] == 0
    assert 1 in codes  # the server, which nobody waits for, ends by itself or with the cell


def test_a_command_that_does_not_exist_fails_the_cell(tmp_path):
    step = {"do": "run", "at": "1 s", "node": "h1", "command": "no-such-program --now", "required": False}
    workload = {"kind": "bulk", "name": "transfer", "from": "h1", "to": "h2", "size": "1 MB"}
    words = {
        "kind": "scenario",
        "version": 1,
        "title": "Missing",
        "topology": "point_to_point",
        "script": [step],
        "workloads": [workload],
    }
    folder = run_text(tmp_path, json.dumps(words)).folder

    (status,) = (json.loads(found.read_text()) for found in folder.glob("cells/*/status.json"))
    assert (status["status"], status["reason"]) == (
        "failed",
        "script step 1: the shell found no such command (exit code 127): no-such-program --now",
    )


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (
            "while :; do :; done",
            'virtual time stood still, because "sh -c while :; do :; done" computed without any system call',
        ),
        (
            "exec python3 -c 'import os\nwhile True: os.getppid()'",
            'virtual time hardly passed, because "python3 -c import os while True: os.getppid()" made system',
        ),
    ],
)
def test_a_command_that_lets_no_time_pass_is_named(tmp_path, command, says):
    """The cell ends at its wall limit, and says what was running."""
    step = {"do": "run", "at": "1 s", "node": "h1", "command": command}
    words = {
        "kind": "scenario",
        "version": 1,
        "title": "Spins",
        "topology": "point_to_point",
        "script": [step],
        "limits": {"wall": "10 s"},
    }
    folder = run_text(tmp_path, json.dumps(words)).folder

    (status,) = (json.loads(found.read_text()) for found in folder.glob("cells/*/status.json"))
    assert status["status"] == "failed"
    assert status["reason"].startswith(f"the cell did not end within its wall limit of 10 s; {says}")
