"""Links that change while traffic flows, commands that are typed, and captures with a filter and without one."""

import json

import dpkt
import pytest

from tests import golden

CHANGES = """
events:
- {at: 1 s, node: h2, command: "iperf3 -s -1", required: false}
- {at: 2 s, node: h1, command: "iperf3 -c 10.0.0.2 -u -b 1M -l 1000 -t 40 --json > /dev/null"}
- {at: 10 s, link: hop, direction: forward, ber: 1e-5}
- {at: 20 s, link: hop, direction: forward, ber: 1e-30}
- {at: 20 s, link: hop, direction: forward, state: down}
- {at: 22 s, link: hop, direction: forward, ber: 0}
- {at: 25 s, link: hop, direction: forward, state: up}
- {at: 30 s, link: hop, direction: forward, rate: 500 kbit/s}
- {at: 36 s, link: hop, direction: forward, rate: 2 Mbit/s}
- {at: 36 s, link: hop, direction: forward, delay: 50 ms}
"""


def test_every_change_takes_effect_when_it_is_made_and_no_other(run):
    """1 Mbit/s of 1028 bytes on IP is 125 packets a second: 10 s at 1e-5 lose 8 % by errors, 5 s down lose 625 as
    outage, and the accounts close. The script's own record has the changes at their times and the exit codes.
    """
    cell = run(CHANGES).cell.completed
    account, lines = cell.account(), cell.records("events")
    packets = 125 * 10
    expected = packets * (1 - (1 - 1e-5) ** (8 * 1028))

    assert account["closes"]
    assert abs(account["corrupt_packets"] - expected) < 4 * expected**0.5
    assert account["outage_packets"] == pytest.approx(625, abs=3)
    assert account["queue_packets"] > 0  # at half the rate for 6 s, the queue overflows
    changes = [(round(line["t_s"]), line["change"]) for line in lines if "change" in line]
    at_last = [(30, "rate"), (36, "rate"), (36, "delay")]
    assert changes == [(10, "ber"), (20, "ber"), (20, "state"), (22, "ber"), (25, "state"), *at_last]
    codes = {line["step"]: line["exit_code"] for line in lines if "command" in line}
    assert codes[2] == 0
    assert 1 in codes  # the server, which nobody waits for, ends by itself or with the cell


LIMIT = "the cell did not end within its wall limit of 10 s"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (
            "no-such-program --now",
            "event 1: the shell found no such command (exit code 127): no-such-program --now",
        ),
        (
            "while :; do :; done",
            f'{LIMIT}; virtual time stood still, because "sh -c while :; do :; done" computed without any system call',
        ),
        (
            "exec python3 -c 'import os\nwhile True: os.getppid()'",
            f'{LIMIT}; virtual time hardly passed, because "python3 -c import os while True: os.getppid()" made system',
        ),
    ],
)
def test_a_command_that_does_not_exist_or_lets_no_time_pass_is_named(run, command, reason):
    """Also one that nobody waits for; the cell fails, at the latest at its wall limit."""
    step = {"at": "1 s", "node": "h1", "command": command, "required": False}
    workload = "workloads: [{kind: bulk, name: transfer, from: h1, to: h2, size: 1 MB}]"
    cell = run(f"events: [{json.dumps(step)}]\n{workload}\nlimits: {{wall_time: 10 s}}\n").cell

    assert cell.status == "failed"
    assert cell.reason.startswith(reason)


@golden.each("commands of a script")
def test_a_required_command_that_ends_with_another_code_than_expected_leaves_the_cell_incomplete(run, case):
    # A cell waits for what is required, so that there is a command that is.
    steps = [json.loads(case) | {"at": "1 s", "node": "h2"}, {"at": "2 s", "node": "h2", "command": "true"}]
    cell = run(f"events: {json.dumps(steps)}\n").cell
    case.hold(f"{cell.status} {cell.reason}")


def test_of_a_long_log_the_end_is_kept(run):
    step = {"at": "1 s", "node": "h2", "command": "seq 1 300000"}
    log = run(f"events: [{json.dumps(step)}]\n").cell.completed.log("events-1-h2")
    whole = "".join(f"{number}\n" for number in range(1, 300_001))
    assert log == f"({len(whole) - (1 << 20)} bytes before this line are left out)\n{whole[-(1 << 20) :]}"


def test_a_filter_that_is_none_is_named_before_anything_is_sent(run):
    """One that only libpcap finds wrong."""
    probe = "probes: [{kind: capture, node: h1, filter: tcp !udp}]"
    cell = run(f"workloads: [{{kind: bulk, name: transfer, from: h1, to: h2, size: 1 kB}}]\n{probe}\n").cell

    assert (cell.status, cell.epoch_realtime_ns) == ("failed", None)
    assert cell.reason == (
        'FilterError: probe h1: found the filter "tcp !udp" (syntax error); expected one of pcap-filter(7). '
        "Correct the filter."
    )


TWO_PROGRAMS = """
links: {{hop: {{forward: {{errors: {{model: independent, ber: 1e-6}}}}}}}}
workloads: [{{kind: bulk, name: transfer, from: h1, to: h2, size: 300 kB}}]
events: [{{at: 1 s, node: h1, command: {command}}}]
probes:
  - {{kind: capture, name: without-54, node: h2, snaplen: 54 B}}
  - {{kind: capture, name: with-54, node: h2, snaplen: 54 B, filter: ip or not ip}}
  - {{kind: capture, name: without-96, node: h2, snaplen: 96 B}}
  - {{kind: capture, name: with-96, node: h2, snaplen: 96 B, filter: ip or not ip}}
"""
# A frame to everybody with a tag of 802.1Q, which the receiver's kernel takes out of the frame, and another without.
TAGGED, PLAIN = "ffffffffffff0202020202028100200588b5", "ffffffffffff02020202020288b5"
SEND = f"""import socket
for head in ("{TAGGED}", "{PLAIN}"):
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    link.bind((next(name for _, name in socket.if_nameindex() if name != "lo"), 0))
    link.send(bytes.fromhex(head) + bytes(50))
"""


def test_a_capture_goes_on_after_its_interface_was_down(run):
    """Time passes meanwhile: the capture waits."""
    down, ping = "ip link set h1-hop down; sleep 1; ip link set h1-hop up", "ping -c 3 10.0.0.2"
    steps = [{"at": f"{at} s", "node": "h1", "command": command} for at, command in ((1, ping), (5, down), (8, ping))]
    cell = run(f"events: {json.dumps(steps)}\nprobes: [{{kind: capture, node: h1}}]\n").cell.completed

    # Of both pings requests and answers, and some of ARP.
    with cell.capture_file("h1").open("rb") as file:
        assert 12 <= len(list(dpkt.pcap.Reader(file))) <= 16
    assert cell.log("capture-h1").endswith("0 packets dropped by kernel\n")


def test_a_capture_without_a_filter_has_the_bytes_of_tcpdump(run):
    """Captures without a filter are taken by another program than those with one."""
    cell = run(TWO_PROGRAMS.format(command=json.dumps(f"python3 -c '{SEND}'"))).cell
    for snaplen in (54, 96):
        names = (f"without-{snaplen}", f"with-{snaplen}")
        without, with_ = ((cell.folder / "captures" / f"{name}.pcap").read_bytes() for name in names)
        assert cell.log(f"capture-without-{snaplen}").startswith("labtool:")
        assert cell.log(f"capture-with-{snaplen}").startswith("tcpdump:")
        assert len(without) > 300 * (16 + 10)
        assert snaplen != 96 or bytes.fromhex(TAGGED) in without
        assert without == with_
