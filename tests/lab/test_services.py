"""Services of a scenario: there before the traffic, watched while the cell runs, ended with it; and what a cell says
when one fails.
"""

from __future__ import annotations

import json

import pytest

from scpslab.analysis.run import open_run
from scpslab.running import RunOptions, run_scenario
from tests.lab.forks import digests

pytestmark = pytest.mark.lab

SCENARIO = """kind: scenario
version: 1
title: Services
topology: point_to_point
parameters: {data_rate: 2 Mbit/s, data_delay: 250 ms, ack_delay: 250 ms}
services:
  - {kind: command, name: web, node: h2, command: "exec python3 -m http.server 8080 --directory /etc", ready_port: 8080}
script:
  - {do: run, at: 0 s, node: h1, command: "curl --silent --show-error --fail http://10.0.0.2:8080/hosts"}
  - {do: run, at: 9 s, node: h1, command: "true"}
seed: 7
"""


def ran(tmp_path, *overrides, name="run"):
    """The one cell, whether it completed or not."""
    scenario = tmp_path / "services.yaml"
    scenario.write_text(SCENARIO)
    result = run_scenario(
        str(scenario), RunOptions(out=tmp_path / name, overrides=list(overrides), jobs=1, use_cache=False)
    )
    (cell,) = open_run(result.folder).cells
    return cell, json.loads((cell.folder / "status.json").read_text())


def log_of(cell, name="web-h2"):
    return (cell.folder / "logs" / f"{name}.log").read_text()


def with_command(command, **more):
    return "services=" + json.dumps([{"kind": "command", "name": "web", "node": "h2", "command": command, **more}])


def test_a_service_is_ready_before_the_traffic_begins_and_ends_with_the_cell(tmp_path):
    cell, status = ran(tmp_path)
    (ready,) = [line for line in cell.records("lab") if line["event"] == "service"]

    assert status["status"] == "completed", status
    assert (ready["name"], ready["node"]) == ("web", "h2")
    assert -60 < ready["ready_t_s"] < 0
    assert '"GET /hosts HTTP/1.1" 200' in log_of(cell)
    assert "127.0.0.1" in log_of(cell, "script-1-h1")


def test_the_same_cell_has_the_same_bytes_twice(tmp_path):
    first, second = (ran(tmp_path, name=name)[0] for name in ("first", "second"))

    # The server's log has the guest's own times in it.
    assert digests(first.folder.parent) == digests(second.folder.parent)


def test_services_start_one_after_the_other_each_when_the_one_before_is_ready(tmp_path):
    base = {"kind": "command", "node": "h2"}
    services = [
        {
            **base,
            "name": "slow",
            "command": "sleep 3; echo up > /tmp/up; sleep 100",
            "ready_command": "test -e /tmp/up",
        },
        {**base, "name": "next", "command": "cat /tmp/up; sleep 100"},
        {**base, "name": "relay", "node": "h1", "command": "sleep 100"},
    ]
    cell, status = ran(
        tmp_path,
        f"services={json.dumps(services)}",
        'script=[{"do": "run", "at": "1 s", "node": "h1", "command": "true"}]',
    )

    assert status["status"] == "completed", status
    assert log_of(cell, "next-h2") == "up\n"
    times = [line["ready_t_s"] for line in cell.records("lab") if line["event"] == "service"]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("command", "more", "says"),
    [
        (
            "echo no such luck; exit 3",
            {"ready_port": 8080},
            ["ended with exit code 3 before it was ready", "no such luck", "logs/web-h2.log"],
        ),
        ("sleep 1000", {"ready_port": 8080, "patience": "2 s"}, ["is not ready after 2 s", "which is empty"]),
        ("sleep 1000", {"ready_command": "false", "patience": "2 s"}, ["is not ready after 2 s"]),
        ("sleep 1000", {"ready_command": "sleep 50", "patience": "2 s"}, ["is not ready after 2 s"]),
        ("no-such-program", {"ready_port": 8080}, ["exit code 127 before it was ready", "not found"]),
        (
            "echo begun; sleep 4; echo over; exit 5",
            {},
            ["ended with exit code 5 while the cell ran; expected it to go on", "over"],
        ),
        ("sleep 4; kill -KILL $$", {}, ["ended with SIGKILL while the cell ran"]),
    ],
)
def test_a_service_that_fails_fails_the_cell_and_says_why(tmp_path, command, more, says):
    only_later = 'script=[{"do": "run", "at": "30 s", "node": "h1", "command": "true"}]'
    _, status = ran(tmp_path, with_command(command, **more), only_later)

    assert status["status"] == "failed"
    assert "service web on h2" in status["reason"]
    for words in says:
        assert words in status["reason"], status["reason"]


def test_a_service_that_does_not_want_to_end_is_ended(tmp_path):
    later = 'script=[{"do": "run", "at": "1 s", "node": "h1", "command": "true"}]'
    _, status = ran(tmp_path, with_command("trap '' TERM; while :; do sleep 1; done"), later)

    assert status["status"] == "completed", status


def test_a_service_that_prints_without_end_fills_its_log_and_nothing_else(tmp_path):
    later = 'script=[{"do": "run", "at": "1 s", "node": "h1", "command": "true"}]'
    cell, status = ran(tmp_path, with_command("head -c 30000000 /dev/zero | tr '\\\\0' x; sleep 1000"), later)

    assert status["status"] == "completed", status
    assert len(log_of(cell)) < 1_100_000
    assert log_of(cell).endswith("(the rest is left out)\n")


def test_workloads_servers_are_watched_too(tmp_path):
    """A server of FTP that somebody kills fails the cell; curl would only have waited for it."""
    overrides = [
        "services=[]",
        (
            'workloads=[{"kind": "ftp", "name": "files", "from": "h1", "to": "h2", "size": "1 MB", "command": '
            '"put", "mode": "passive"}]'
        ),
        'script=[{"do": "run", "at": "2 s", "node": "h2", "command": "kill -KILL $(pidof vsftpd)"}]',
    ]
    _, status = ran(tmp_path, *overrides)

    assert status["status"] == "failed"
    assert status["reason"].startswith("service files on h2: vsftpd ended with SIGKILL while the cell ran")
