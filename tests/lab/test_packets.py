"""The record of packets against captures and accounts, and the auditor against labs that were changed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import dpkt
import numpy as np
import pytest

from scpslab.measure.packets import read
from tests.lab.copied_tree import COPIED, NOT_COPIED, ROOT
from tests.lab.ran import HEAD, Lab

LIMIT_S = 300
# Two kinds of traffic each way, every cause of loss, and a queue that now and then is full.
EVERYTHING = """
topology: point_to_point
links:
  hop:
    forward:
      rate: 4 Mbit/s
      delay: 40 ms
      queue: {limit: 10 kB}
      duplicate: 0.02
      errors: {model: gilbert-elliott, ber_good: 1e-7, ber_bad: 1e-4, good_to_bad_per_bit: 1e-5, bad_to_good_per_bit: 1e-4,
               outages: [{from: 3 s, to: 3.5 s}], drop_packets: [7, 9, 200]}
    return: {delay: 40 ms, errors: {model: vector-file, file: gaps.txt}}
workloads:
  - {kind: background, name: flood, from: h1, to: h2, max_rate: 6 Mbit/s, redraw: 500 ms, packet: 1000 B}
  - {kind: bulk, name: a, from: h1, to: h2, start: 4 s, size: 200 kB}
  - {kind: iperf3, name: u, from: h2, to: h1, duration: 4 s, udp_rate: 1 Mbit/s, required: false}
  - {kind: ping, name: p, from: h1, to: h2, count: 20, interval: 100 ms, required: false}
probes:
  - {kind: capture, name: sender, node: h1}
  - {kind: capture, name: receiver, node: h2}
packets: true
seed: 5
"""
LONG = """
topology: point_to_point
links: {hop: {forward: {rate: 200 Mbit/s, delay: 1 ms}, return: {rate: 200 Mbit/s, delay: 1 ms}}}
workloads: [{kind: bulk, name: a, from: h1, to: h2, size: 80 MB}]
packets: true
limits: {memory: 128 MiB}
"""
# Distances in bits from one error to the next: few, so that they repeat.
GAPS = "15653\n90541\n7\n42100\n230000\n"
OTHERS = {
    "jitter": "links.hop.forward.jitter=3 ms",
    "packets": "links.hop.forward.queue={limit: 12 packets}",
    "red": "links.hop.forward.queue={discipline: red, limit: 60 kB}",
    "codel": "links.hop.forward.queue={discipline: codel, limit: 60 kB}",
    "delays": "links.hop.forward.delay_table=[{at: 2 s, delay: 100 ms}, {at: 4 s, delay: 20 ms}]",
    "flips": "links.hop.return.errors={model: independent, ber: 1e-5, action: flip}",
}
# Faults of the stages and of the lab: what stands there, and what a slip would have made of it.
MUTATIONS = {
    "a packet's time": (
        "images/guest/tools/stages.bpf.c",
        "start + bytes * NS_PER_S",
        "start + (bytes - 1) * NS_PER_S",
    ),
    "the queue's border": (
        "images/guest/tools/stages.bpf.c",
        "backlog_bytes + bytes > entry",
        "backlog_bytes + bytes >= entry",
    ),
    "the backlog": ("images/guest/tools/stages.bpf.c", "-= departure->bytes;", "-= departure->bytes - 1;"),
    "a bit a packet": ("images/guest/tools/stages.bpf.c", "bits_to_error - bits : 0", "bits_to_error - bits + 1 : 0"),
    "the vector's turn": ("images/guest/tools/stages.bpf.c", "arrival->gap_at = 1; //", "arrival->gap_at = 0; //"),
    "an outage's end": ("images/guest/tools/stages.bpf.c", "t_ns < window->to_ns)", "t_ns + 50000000 < window->to_ns)"),
    "the drop list": (
        "images/guest/tools/stages.bpf.c",
        "arrival->drop_at += 1;\n\treturn 1;",
        "arrival->drop_at += 1;\n\treturn 0;",
    ),
    "draws": ("images/guest/tools/stages.bpf.c", "state ^= state >> 27;", "state ^= state >> 26;"),
    "framing": (
        "src/scpslab/lab/stages.py",
        "        return ENTRY.pack(rate, plan.overhead_bytes,",
        "        return ENTRY.pack(rate, plan.overhead_bytes + 1,",
    ),
    "the delay": (
        "src/scpslab/lab/stages.py",
        'f"netem limit {NETEM_LIMIT} delay {delay_ns}ns{rate}"',
        'f"netem limit {NETEM_LIMIT} delay {delay_ns + 20_000}ns{rate}"',
    ),
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Runs EVERYTHING, with the file of its errors beside it, and changes on the command line."""
    lab = Lab(tmp_path_factory.mktemp("runs"))
    (lab.folder / "gaps.txt").write_text(GAPS)
    return lambda *changes: lab(EVERYTHING, *changes).cell.completed


@pytest.fixture(scope="module")
def everything(ran):
    """One cell with everything."""
    return ran()


def tcp_of(file: Path, port: int):
    """What a capture shows of the packets to a port: sequence, acknowledgement, window, flags, IP id, payload."""
    with file.open("rb") as opened:
        for _, frame in dpkt.pcap.Reader(opened):
            ip = dpkt.ethernet.Ethernet(frame).data
            if isinstance(ip, dpkt.ip.IP) and isinstance(ip.data, dpkt.tcp.TCP) and ip.data.dport == port:
                header = 4 * ip.data.off
                yield ip.data.seq, ip.data.ack, ip.data.win, ip.data.flags, ip.id, ip.len - 20 - header


def test_the_record_is_what_captures_show(ran):
    """What arrives, in its order, is what the receiver's capture has, which stands before errors; what has passed the
    queue is what the sender's has.
    """
    everything = ran("links.hop.forward.duplicate=0")
    forward = next(one for one in read(everything.packets_file) if one.direction == "forward")
    ports = np.array([flow.to_port for flow in forward.flows])[forward.flow]
    mine = forward.is_tcp & (ports == 5001)
    columns = (forward.sequence, forward.acknowledgement, forward.window, forward.flags, forward.id_, forward.payload)
    recorded = np.stack([column.astype(np.int64) for column in columns], axis=1)

    receiver = np.array(list(tcp_of(everything.capture_file("receiver"), 5001)))
    sender = np.array(list(tcp_of(everything.capture_file("sender"), 5001)))
    has_arrived = mine & (forward.arrived_ns >= 0)
    assert np.array_equal(recorded[mine & ~forward.had("queue")], sender)
    assert np.array_equal(recorded[has_arrived], receiver)


def test_the_record_counts_what_the_accounts_count(everything):
    for packets in read(everything.packets_file):
        account = everything.account(packets.direction)
        assert len(packets) == account["offered_packets"]
        assert int(packets.wire_bytes.sum()) == account["offered_bytes"]
        for cause in ("queue", "corrupt", "outage", "policy"):
            assert int(packets.had(cause).sum()) == account[f"{cause}_packets"], cause
        assert len(packets.duplicates_ns) == account["duplicated_packets"]
    forward = everything.account()
    assert all(forward[f"{cause}_packets"] for cause in ("queue", "corrupt", "outage", "policy", "duplicated"))


@pytest.mark.parametrize("other", OTHERS)
def test_every_packet_is_explained(ran, other):
    """With other queues, delays and errors too: the cell would have failed."""
    assert ran(OTHERS[other]).packets_file.is_file()


def test_a_record_without_room_fails_the_cell_by_name(run):
    cell = run(LONG).cell

    assert cell.status == "failed"
    assert "the record of packets: found" in cell.reason
    assert "Raise limits.memory" in cell.reason


@pytest.fixture(scope="module")
def copied(tmp_path_factory) -> Path:
    """The project in a folder of its own."""
    folder = tmp_path_factory.mktemp("copied")
    for name in (*COPIED, "tools"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=NOT_COPIED)
        else:
            shutil.copy2(ROOT / name, folder / name)
    (folder / "everything.yaml").write_text(f"{HEAD}{EVERYTHING}")
    (folder / "gaps.txt").write_text(GAPS)
    return folder


@pytest.mark.parametrize("fault", MUTATIONS)
def test_a_fault_of_the_stages_is_found(copied, fault):
    """By the auditor, which names the first packet."""
    name, right, wrong = MUTATIONS[fault]
    source = copied / name
    text = source.read_text()
    assert text.count(right) == 1, fault
    source.write_text(text.replace(right, wrong))
    try:
        argv = [sys.executable, "-m", "scpslab", "run", "everything.yaml", "--no-cache"]
        environment = os.environ | {"PYTHONPATH": str(copied / "src"), "COLUMNS": "400"}
        done = subprocess.run(
            argv, cwd=copied, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    finally:
        source.write_text(text)

    assert "the audit of packets: hop." in done.stdout + done.stderr, done.stdout + done.stderr
