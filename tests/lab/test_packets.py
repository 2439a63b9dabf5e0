"""The record of packets against captures and accounts, and the auditor against labs that were changed."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import dpkt
import numpy as np
import pytest
import yaml

from scpslab.analysis.collect import measure
from scpslab.analysis.lost_packets import find_losses
from scpslab.measure.packets import read
from scpslab.measure.states import NONE, UNSET
from tests.lab.command import scpslab
from tests.lab.copied_tree import COPIED, NOT_COPIED, ROOT
from tests.lab.ran import Lab
from tests.lab.read_twice import columns_hold

from scpslab.kinds.workloads.bulk import metrics as bulk

LIMIT_S = 300
FOLDER = Path(__file__).parents[1] / "data" / "packets"
OTHERS = {
    "jitter": "links.hop.forward.jitter=3 ms",
    "packets": "links.hop.forward.queue={limit: 12 packets}",
    "red": "links.hop.forward.queue={discipline: red, limit: 60 kB}",
    "codel": "links.hop.forward.queue={discipline: codel, limit: 60 kB}",
    "delays": "links.hop.forward.delay_table=[{at: 2 s, delay: 100 ms}, {at: 4 s, delay: 20 ms}]",
    "flips": "links.hop.return.errors={model: independent, ber: 1e-5, action: flip}",
}
FAULTS = yaml.safe_load((FOLDER / "faults.yaml").read_text())


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Runs everything.yaml with changes on the command line."""
    lab = Lab(tmp_path_factory.mktemp("runs"))
    return lambda *changes: lab(FOLDER / "everything.yaml", *changes).cell.completed


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


BESIDE = """
topology: point_to_point
links: {hop: {forward: {queue: {limit: 1 MB}, errors: {ber: 1e-7}}, return: {rate: 2 Mbit/s, errors: {ber: 2e-5}}}}
workloads:
  - {kind: ftp, name: file, from: h1, to: h2, size: 50 kB}
  - {kind: bulk, name: big, from: h1, to: h2, size: 3 MB}
  - {kind: background, name: load, from: h1, to: h2, max_rate: 400 kbit/s, redraw: 1 s, packet: 500 B}
probes:
  - {kind: capture, name: syns, node: h1, filter: 'tcp[tcpflags] & tcp-syn != 0'}
  - {kind: capture, name: sender, node: h1}
  - {kind: capture, name: receiver, node: h2}
packets: true
seed: 6
"""


def test_columns_are_those_that_a_second_reader_finds(run):
    """Of a file beside a bulk transfer with losses and congestion traffic, by captures and by the record."""
    recorded, captured = (run(BESIDE, *changes).cell.completed for changes in ((), ("packets=off",)))
    found = set(columns_hold(recorded, captured))

    # Round trips behind the queue are another one's where acknowledgements are lost; windows have their scale in options.
    names = {column.name for column in (*bulk.WIRE_COLUMNS, *bulk.SHAPE_COLUMNS)} - {
        "queue_mean_bytes",
        "queue_estimate_r",
    }
    assert {f"column bulk {name} read twice" for name in names} - found == set()
    names -= {"wire_rtt_min_s", "wire_rtt_max_s", "max_advertised_window_bytes"}
    assert {f"column bulk {name} of the record" for name in names} - found == set()
    columns = measure(recorded)
    assert columns["capture_retransmissions"] > 0
    assert 0 < columns["file_utilization"] < columns["big_utilization"] + 1 < 2


SAMPLED = """
topology: point_to_point
links: {hop: {forward: {delay: 60 ms, rate: 4 Mbit/s, queue: {limit: 30 kB}, errors: {ber: 1e-6}}, return: {delay: 60 ms}}}
hosts: {h1: {congestion_control: %s}}
workloads:
  - {kind: bulk, name: a, from: h1, to: h2, size: 2 MB}
  - {kind: bulk, name: b, from: h1, to: h2, size: 1 MB, start: 2 s, port: 5002}
probes: [{kind: tcp_info, node: h1, interval: 7 ms}]
events: [{at: 3 s, link: hop, state: down}, {at: 4500 ms, link: hop, state: up}]
seed: 4
"""


OF_SCPS = """
topology: point_to_point
links: {hop: {forward: {errors: {ber: 5e-6}}}}
hosts: {h1: {stack: scps, preset: modern, congestion_control: vegas}, h2: {stack: scps, preset: modern}}
workloads:
  - {kind: bulk, name: bulk, from: h1, to: h2, size: 500 kB}
  - {kind: fp, name: file, from: h1, to: h2, size: 100 kB}
probes: [{kind: tcp_info, node: h1}]
seed: 4
"""


@pytest.mark.parametrize("control", ["cubic", "reno", "bbr"])
def test_the_states_of_tcp_are_those_that_samples_find(run, control):
    """Through losses and timeouts, which only a timer tells the sender: at each sample the last state before it."""
    cell = run(SAMPLED % control).cell.completed
    states = {(one.local, one.remote): one for one in cell.states}
    samples = [line for line in cell.records("tcp-h1") if line["state"] == "established"]

    seen = set()
    for line in samples:
        one = states[line["local"], line["remote"]]
        t_ns = round(line["t_s"] * 1e9)
        at = np.searchsorted(one.t_ns, t_ns, side="left") - 1
        # Sample and packet in the same microsecond stand in either order.
        if at < 0 or np.abs(one.t_ns - t_ns).min() < 1000:
            continue
        unset = line["ssthresh_segments"] >= UNSET
        ssthresh = NONE if unset else line["ssthresh_segments"] * one.mss[at]
        assert (one.cwnd_bytes[at], one.ssthresh_bytes[at]) == (line["cwnd_segments"] * one.mss[at], ssthresh), line
        assert abs(one.srtt_us[at] / 1e3 - line["srtt_ms"]) < 0.0015, line
        seen.add((line["local"], line["ca_state"]))
    assert len({local for local, _ in seen}) == 2
    assert {state for _, state in seen} >= {"open", "recovery", "loss"}


def test_the_states_of_scps_are_those_of_its_trace(run):
    """In a transfer and in one of the file protocol, whose connections nobody traces, through losses."""
    cell = run(OF_SCPS).cell.completed
    (sent,) = [one for one in cell.states if one.local.startswith("198.18.1.1:") and one.remote.endswith(":5001")]
    told = []
    for line in cell.records("bulk-h1-trace"):
        windows = (NONE if line[name] is None else line[name] for name in ("cwnd", "ssthresh"))
        state = (*windows, int((line["srtt_s"] or 0) * 1e6 + 1e-4))
        if not told or told[-1][1:] != state:
            told.append((round(line["t_s"] * 1e9), *state))
    columns = (sent.t_ns, sent.cwnd_bytes, sent.ssthresh_bytes, sent.srtt_us)
    known = list(zip(*(column.tolist() for column in columns), strict=True))
    assert [state for _, *state in known] == [state for _, *state in told]
    assert max(abs(one[0] - other[0]) for one, other in zip(known, told, strict=True)) <= 1
    assert len(known) > 100
    assert len({one.local for one in cell.states if one.lost is None}) >= 5


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


def test_a_connection_as_qlog_has_all_that_it_sent_and_why_it_was_lost(ran, tmp_path):
    cell = ran("links.hop.forward.duplicate=0")
    scpslab("packets", cell.folder.parents[1], "--qlog", tmp_path)
    (file,) = tmp_path.glob("a-h1-*.qlog")
    first, *events = map(json.loads, file.read_text().split("\x1e")[1:])
    assert (first["qlog_version"], first["qlog_format"]) == ("0.3", "JSON-SEQ")
    assert [one["time"] for one in events] == sorted(one["time"] for one in events)

    def of(name):
        return [one["data"] for one in events if one["name"] == name]

    port = file.stem.rpartition("-")[2]
    own = [one for one in find_losses(cell, "").lost if one.source == f"10.0.0.1:{port}"]
    told = of("scpslab:packet_lost")
    assert Counter(one["cause"] for one in told) == Counter(one.cause for one in own)
    assert len({one.cause for one in own}) > 1

    sent = {one["header"]["packet_number"]: one for one in of("transport:packet_sent")}
    ranges = [pair for one in of("transport:packet_received") for pair in one["frames"][0]["acked_ranges"]]
    acked = [number for begin, end in ranges for number in range(begin, end + 1)]
    assert len(set(acked)) == len(acked)
    lost = {one["header"]["packet_number"] for one in told}
    # Every byte is acknowledged once, in the packet that carried it last.
    carried = {number: one["frames"][0] for number, one in sent.items() if one["frames"]}
    assert sum(carried[number]["length"] for number in acked) == 200_000 + 2
    assert set(carried) - set(acked) <= lost | {
        n for n in carried if carried[n]["offset"] in {carried[one]["offset"] for one in acked}
    }
    assert of("recovery:metrics_updated")


def test_without_a_record_everything_else_is_the_same(ran):
    """Byte for byte, but for the plan, which says whether there is one."""
    recorded, bare = (
        {path.relative_to(cell.folder): path.read_bytes() for path in cell.folder.rglob("*.*")}
        for cell in (ran(), ran("packets=off"))
    )

    assert set(recorded) - set(bare) == {Path("records", "packets.rec"), Path("records", "states.rec")}
    assert {path for path, content in bare.items() if content != recorded[path]} == {Path("plan.json")}


@pytest.mark.parametrize("other", OTHERS)
def test_every_packet_is_explained(ran, other):
    """With other queues, delays and errors too: the cell would have failed."""
    assert ran(OTHERS[other]).packets_file.is_file()


def test_a_record_without_room_fails_the_cell_by_name(run):
    ran = run(FOLDER / "long.yaml")
    cell = ran.cell

    assert cell.status == "failed"
    said = re.match(r"the record of packets: found (\d+) lines; expected at most (\d+), as many", cell.reason)
    # Of 512 MiB it is 262,144 (docs/plan-format.md).
    assert int(said[2]) == 262_144 // 4 < int(said[1])
    assert "Raise limits.memory" in cell.reason
    # There is no half of a record, and the row has no numbers.
    assert not cell.packets_file.exists()
    assert {ran.row[name] for name in ("bytes", "transfer_s", "hop_data_offered_packets")} == {""}


@pytest.fixture(scope="module")
def copied(tmp_path_factory) -> Path:
    """The project in a folder of its own."""
    folder = tmp_path_factory.mktemp("copied")
    for name in (*COPIED, "tools"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=NOT_COPIED)
        else:
            shutil.copy2(ROOT / name, folder / name)
    for name in ("everything.yaml", "gaps.txt"):
        shutil.copyfile(FOLDER / name, folder / name)
    return folder


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_stages_is_found(copied, fault):
    """By the auditor, which names the first packet."""
    slip = FAULTS[fault]
    source = copied / slip["file"]
    text = source.read_text()
    assert text.count(slip["right"]) == 1, fault
    source.write_text(text.replace(slip["right"], slip["wrong"]))
    try:
        argv = [sys.executable, "-m", "scpslab", "run", "everything.yaml", "--no-cache"]
        environment = os.environ | {"PYTHONPATH": str(copied / "src"), "COLUMNS": "400"}
        done = subprocess.run(
            argv, cwd=copied, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    finally:
        source.write_text(text)

    assert "the audit of packets: hop." in done.stdout + done.stderr, done.stdout + done.stderr
