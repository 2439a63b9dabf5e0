"""Services of a scenario: there before the traffic, watched, ended with the cell; and what is said when one fails."""

import json

import pytest

from tests import golden
from tests.lab.ran import cases

SCENARIO = """
links: {hop: {forward: {rate: 2 Mbit/s, delay: 250 ms}, return: {delay: 250 ms}}}
services:
  - {kind: command, name: web, node: h2, command: "exec python3 -m http.server 8080 --directory /etc", ready_port: 8080}
events:
  - {at: 0 s, node: h1, command: "curl --silent --show-error --fail http://10.0.0.2:8080/hosts"}
  - {at: 9 s, node: h1, command: "true"}
seed: 7
"""


def services(*commands, **more):
    """Overrides: these services, commands on h2, instead of SCENARIO's; keyword arguments are keys of the last one."""
    entries = [{"kind": "command", "name": f"s{n}", "node": "h2", "command": it} for n, it in enumerate(commands)]
    entries[-1] |= more
    return f"services={json.dumps(entries)}"


def until(at, node="h1", command="true"):
    """An override: a script of one step."""
    return f"events={json.dumps([{'at': at, 'node': node, 'command': command}])}"


def test_a_service_is_ready_before_the_traffic_begins_and_ends_with_the_cell(run):
    """Twice, with the same bytes."""
    first, again = run(SCENARIO), run(SCENARIO)
    cell = first.cell.completed
    ready = cell.line("lab", event="service")

    assert (ready["name"], ready["node"]) == ("web", "h2")
    assert -60 < ready["ready_t_s"] < 0
    assert '"GET /hosts HTTP/1.1" 200' in cell.log("web-h2")
    assert "127.0.0.1" in cell.log("events-1-h1")
    # The server's log has the guest's own times in it.
    assert first.digests == again.digests


def test_services_start_one_after_the_other_each_when_the_one_before_is_ready(run):
    slow = {"name": "slow", "command": "sleep 3; echo up > /tmp/up; sleep 100", "ready_command": "test -e /tmp/up"}
    following = {"name": "next", "command": "cat /tmp/up; sleep 100"}
    relay = {"name": "relay", "node": "h1", "command": "sleep 100"}
    entries = [{"kind": "command", "node": "h2"} | service for service in (slow, following, relay)]
    cell = run(SCENARIO, f"services={json.dumps(entries)}", until("1 s")).cell.completed

    assert cell.log("next-h2") == "up\n"
    times = [line["ready_t_s"] for line in cell.lines("lab", event="service")]
    assert times == sorted(times)


# A command, and what the service has besides.
FAILS = {name: (command, json.loads(more)) for _, (name, command, more) in golden.rows("services that fail", 3)}


@pytest.fixture(scope="module")
def failed(run_once):
    """A cell for each service that fails."""
    of = {name: f"{{{services(command, **more).replace('=', ': ', 1)}}}" for name, (command, more) in FAILS.items()}
    return run_once(SCENARIO, f"sweep={{{cases('service', of)}}}", until("30 s"), jobs=2).by("service")


@golden.each("services that fail", "case service command more")
def test_a_service_that_fails_fails_the_cell_and_says_why(case, failed, service, command, more):
    assert failed[service].status == "failed", (command, more)
    case.hold(failed[service].reason)


def test_services_that_do_not_want_to_end_or_print_without_end_disturb_nothing(run):
    """Each is ended with the cell, and a log has an end."""
    stubborn, loud = "trap '' TERM; while :; do sleep 1; done", "head -c 30000000 /dev/zero | tr '\\\\0' x; sleep 1000"
    cell = run(SCENARIO, services(stubborn, loud), until("1 s")).cell.completed

    first, last = cell.log("s1-h2").split("\n", 1)
    assert len(last) == 1 << 20
    assert first == f"({30_000_000 - len(last)} bytes before this line are left out)"


@pytest.mark.parametrize(("signal", "says"), [("terminate", "farewell"), ("kill", "")])
def test_a_service_that_an_event_ends_is_gone_from_then_on_and_the_cell_goes_on(run, signal, says):
    """Asked to end it may tidy up; killed it may not."""
    polite = "trap 'echo farewell >&2; exit 0' TERM; while :; do sleep 0.1; done"
    steps = [{"at": "2 s", "service": "s0", "signal": signal}, {"at": "5 s", "node": "h1", "command": "true"}]
    cell = run(SCENARIO, services(polite), f"events={json.dumps(steps)}").cell.completed

    assert cell.log("s0-h2").strip() == says
    assert [line for line in cell.lines("events") if "service" in line] == [
        {"t_s": pytest.approx(2, abs=0.001), "step": 1, "service": "s0", "signal": signal}
    ]


def test_workloads_servers_are_watched_too(run):
    """A server of FTP that somebody kills fails the cell; curl would only have waited for it."""
    ftp = "{kind: ftp, name: files, from: h1, to: h2, size: 1 MB, command: put, mode: passive}"
    cell = run(SCENARIO, "services=[]", f"workloads=[{ftp}]", until("2 s", "h2", "kill -KILL $(pidof vsftpd)")).cell

    assert cell.status == "failed"
    assert cell.reason.startswith(
        "service files on h2: vsftpd ended with SIGKILL (as when memory runs out: limits.memory) while the cell ran"
    )
