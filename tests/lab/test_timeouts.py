"""Times that hold: timeouts of workloads, and how long the lab waits for what is under way."""

import json

import pytest

from scpslab.measure.connections import RST
from scpslab.measure.packets import read

OVER_S = 1 + 10.123
HEAD = """
links: {hop: {forward: {delay: 20 ms, errors: {ber: 5e-5}}, return: {delay: 20 ms}}}
workloads: [{kind: bulk, name: transfer, from: h1, to: h2, size: 2 MB, start: 1 s, timeout: 10123 ms}]
packets: true
sweep:
  kind:
    cases:
      kernel: {hosts.h1.send_buffer: 32 kB}
      scps: {hosts.*.stack: scps, hosts.*.preset: modern}
      ftp: {workloads.transfer.kind: ftp}
      fp: {workloads.transfer.kind: fp, workloads.transfer.command: put}
      iperf3: {workloads.transfer.kind: iperf3}
"""


@pytest.fixture(scope="module")
def late(run_once):
    """A cell for each kind whose transfer still moves when its timeout is over."""
    return run_once(HEAD).by("kind")


@pytest.mark.parametrize("kind", ["kernel", "scps", "ftp", "fp", "iperf3"])
def test_the_timeout_of_a_transfer_that_still_moves_holds_to_the_millisecond(late, kind):
    cell = late[kind]
    assert cell.status == "incomplete"
    if kind == "scps":
        # It takes its leave before it reports.
        (sent,) = (one for one in read(cell.packets_file) if one.direction == "forward")
        offered_s = sent.offered_ns / 1e9
        assert offered_s[sent.payload > 0][-1] < OVER_S
        assert offered_s[(sent.flags & RST) != 0][0] == pytest.approx(OVER_S, abs=0.001)
        return
    assert cell.virtual_s == pytest.approx(OVER_S, abs=0.001), cell.reason
    assert cell.reason == "transfer: the timeout ran out"
    assert cell.account()["delivered_bytes"] > 20_000


def test_ping_waits_as_long_as_its_way_can_take(run):
    delays = "links: {hop: {forward: {delay: 6 s}, return: {delay: 6 s}}}"
    ping = "workloads: [{kind: ping, name: echo, from: h1, to: h2, count: 5}]"
    summary = run(f"{delays}\n{ping}\n").cell.completed.records("echo")[-1]
    assert (summary["sent"], summary["received"]) == (5, 5)


SEND = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
SEND += "[s.sendto(bytes(1400), ('10.0.0.2', 9)) for _ in range(400)]"


def test_the_accounts_wait_until_the_slowest_queue_is_empty(run):
    """300 packets of 1428 bytes at 24 kbit/s are 143 seconds."""
    slow = "links: {hop: {forward: {rate: 24 kbit/s, queue: {limit: 300 packets}}}}"
    step = {"at": "1 s", "node": "h1", "command": f'python3 -c "{SEND}"'}
    account = run(f"{slow}\nevents: [{json.dumps(step)}]\n").cell.completed.account()
    assert account["closes"]
    # One is on the line while the others wait.
    assert 300 <= account["delivered_packets"] <= 302
    assert account["offered_packets"] == account["delivered_packets"] + account["queue_packets"] == 400
