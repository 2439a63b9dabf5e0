"""SCPS on hosts of the lab: TP with itself and the kernel's TCP, over NP through two routers, protected by SP."""

import pytest

from scpslab.analysis.collect import measure
from scpslab.lab.scps_end import master_key
from tests.lab.ran import cases

SCPS = "{stack: scps, preset: fy97-rate}"
KERNEL = "{preset: modern}"
ENDS = {
    "scps-to-scps": (SCPS, SCPS),
    "scps-to-kernel": (SCPS, KERNEL),
    "kernel-to-scps": (KERNEL, SCPS),
    "vegas-to-kernel-of-1997": ("{stack: scps, preset: fy97-vegas}", "{preset: fy97-reno}"),
}


@pytest.fixture(scope="module")
def between(run_once):
    """A cell of 50 kB at 5e-5 each way for each pair of ends."""
    ends = cases("ends", {name: f"{{hosts.ws1: {one}, hosts.ws2: {two}}}" for name, (one, two) in ENDS.items()})
    errors, size = "links.hop.*.errors.ber=5e-5", "workloads.transfer.size=50 kB"
    return run_once("fy97/fig04:test", f"sweep={{{ends}}}", errors, size, jobs=2).by("ends")


@pytest.mark.parametrize("ends", ENDS)
def test_every_byte_arrives_whoever_is_at_the_ends(ends, between):
    """Both ends say so, and the bytes were compared."""
    cell = between[ends]
    receiver = cell.line("transfer", event="receiver")
    assert cell.status == "completed"
    assert (receiver["bytes"], receiver["wrong_bytes"]) == (50_000, 0)
    assert cell.line("transfer", event="sender")["status"] == "completed"


def test_rate_control_fills_the_hop_and_queues_nothing(run):
    """Full segments at the rate that fits: the hop's queue holds no more than the bucket, and the hop never idles."""
    probes = "probes=[{kind: capture, node: ws2}, {kind: tcp_info, node: ws1, interval: 100 ms}]"
    ran = run("fy97/fig04:test", "sweep={}", f"hosts.*={SCPS}", "workloads.transfer.size=500 kB", probes)

    account = ran.cell.account()
    seconds = 500_000 / 1400 * 1456 * 8 / 2e6
    assert account["queue_packets"] == 0
    # The bucket holds 5 ticks of 10 ms: 12.5 kB may stand in the queue and make the round trip 50 ms longer; it never
    # grows.
    assert account["most_bytes"] < 16_000
    assert float(ran.row["transfer_s"]) == pytest.approx(seconds, rel=0.02)
    samples = [line for line in ran.cell.records("tcp-ws1") if line["rate_credit_bytes"] is not None]
    assert max(line["srtt_ms"] for line in samples if line["srtt_ms"]) < 590


@pytest.mark.smoke
def test_the_same_cell_twice_has_the_same_bytes(run):
    """Packets, trace and report of the SCPS programs are part of what is reproducible."""
    probes = "probes=[{kind: capture, node: ws2}, {kind: tcp_info, node: ws1}]"
    first, second = (run("fy97/fig04:test", probes).digests for _ in range(2))

    assert len(first) > 10
    assert first == second


def test_a_sender_that_hears_nothing_gives_up(run):
    """An outage of the whole timeout: the cell is incomplete, and says who gave up."""
    outage = "links.hop.*.errors.outages=[{from: 2 s, to: 3000 s}]"
    cell = run("fy97/fig04:test", "sweep={}", f"hosts.*={SCPS}", outage, "workloads.transfer.timeout=60 s").cell

    assert cell.status == "incomplete"
    assert "gave up" in cell.reason


NP = """
topology: fy97_np
limits: {lab_time: 300 s}
hosts:
  ws1: {stack: scps, network: np}
  ws2: {stack: scps, network: np}
  ws3: {stack: scps, network: np, congestion_control: none, loss_response: corruption, rate: 2600 kbit/s}
workloads:
- {kind: bulk, name: transfer, from: ws1, to: ws2, size: 200 kB, precedence: 9}
"""
LOAD = "- {kind: bulk, name: load, from: ws3, to: ws2, port: 5003, size: 20 MB, required: false, timeout: 200 s}\n"


def measured(ran):
    """The metrics of the one cell, which was completed."""
    assert ran.cell.status == "completed", ran.cell.reason
    return measure(ran.cell)


@pytest.mark.smoke
def test_a_transfer_crosses_both_routers_and_every_frame_is_accounted_for(run):
    metrics = measured(run(NP))
    assert metrics["payload_match"] is True
    assert (metrics["modem_data_lost_frames"], metrics["modem_ack_lost_frames"]) == (0, 0)
    assert metrics["ws5_modem_p9_queued"] == metrics["modem_data_sent_frames"]
    assert [metrics[f"transfer_{kind}_signals"] for kind in ("congestion", "corruption", "outage")] == [0, 0, 0]


def test_bit_errors_are_signalled_as_corruption_and_as_nothing_else(run):
    metrics = measured(run(NP + "links: {modem: {forward: {errors: {model: independent, ber: 1.0e-5}}}}\n"))
    assert metrics["ws6_modem_damaged"] > 5
    # One error in 256 makes a flag of an octet, and so two pieces of one frame; one in a thousand hits a flag, and
    # joins two frames.
    assert abs(metrics["modem_data_lost_frames"] - metrics["ws6_modem_damaged"]) <= 1
    assert 0 < metrics["transfer_corruption_signals"] <= metrics["ws6_corruption_reports"]
    assert (metrics["transfer_congestion_signals"], metrics["payload_match"]) == (0, True)


def test_an_overloaded_router_quenches_and_discards_the_lowest_precedence(run):
    metrics = measured(run(NP + LOAD))
    assert metrics["ws5_source_quenches"] > 0
    assert metrics["load_congestion_signals"] > 0
    assert metrics["transfer_corruption_signals"] == 0
    assert metrics["ws5_modem_p0_discarded"] > 100
    assert metrics["ws5_modem_p9_discarded"] == 0


SP = """
topology: fy97
limits: {lab_time: 300 s}
hosts:
  ws1: {stack: scps, network: ip, sp: {}}
  ws2: {stack: scps, network: ip, sp: {}}
workloads:
- {kind: bulk, name: transfer, from: ws1, to: ws2, size: 100 kB, timeout: 60 s}
"""
FILE = "- {kind: fp, name: file, from: ws1, to: ws2, size: 100 kB, command: put, stop: kill-client, timeout: 200 s}\n"


@pytest.mark.parametrize("text", [SP, SP.replace("fy97", "fy97_np").replace("network: ip", "network: np")])
def test_every_packet_of_a_transfer_and_a_resumed_file_is_protected(run, text):
    metrics = measured(run(text + FILE))
    assert metrics["transfer_sender_sp_sealed"] == metrics["transfer_receiver_sp_opened"] > 70
    assert metrics["transfer_receiver_sp_sealed"] == metrics["transfer_sender_sp_opened"] > 0
    assert (metrics["transfer_sender_sp_dropped"], metrics["transfer_receiver_sp_dropped"]) == (0, 0)


def test_another_key_at_one_end_is_named_as_the_reason(run):
    cell = run(SP, "hosts.ws2.sp={key_name: other}").cell
    assert cell.status == "incomplete"
    assert "transfer: sender gave up: " in cell.reason
    assert "SCPS-SP: nothing came that verifies, the other end may have another key" in cell.reason


def test_the_key_is_in_none_of_the_cells_files_and_a_repetition_is_the_same(run):
    first, second = (run(SP, "probes=[{kind: capture, node: ws1}]") for _ in range(2))
    assert first.digests == second.digests
    key = master_key(first.cell.plan.cell.workloads[0].from_scps.sp.key_seed)
    files = {path.name: path.read_bytes() for path in first.cell.folder.rglob("*") if path.is_file()}
    assert "ws1.pcap" in files
    assert [name for name, content in files.items() if key.encode() in content or bytes.fromhex(key) in content] == []


FAR = """topology: gateway
links:
  hop: {forward: {delay: 600 s, queue: {limit: 8 MB}}, return: {delay: 600 s, queue: {limit: 8 MB}}}
workloads:
  - {kind: bulk, name: transfer, from: client, to: server, size: 200 kB, start: 1 s, timeout: 90000 s}
limits: {lab_time: 100000 s}
"""
# A round to open, and half of one each for the data and what answers it.
ROUNDS, ROUND_S = 2, 1200
FAR_HOST = "{stack: scps, preset: modern, congestion_control: none, initial_rto: 3000 s, rto_max: 6000 s}"
FAR_FILE = "  - {kind: fp, name: file, from: client, to: server, size: 50 kB, command: put, wait_timeout: 20000 s, timeout: 90000 s}\n"
FAR_GATEWAYS = """services:
  - {kind: gateway, name: near, node: g1, peer: 10.9.0.2, far: [10.2.0.0/24], rate: 2 Mbit/s}
  - {kind: gateway, name: far, node: g2, peer: 10.9.0.1, far: [10.1.0.0/24], rate: 500 kbit/s}
events:
  - {at: 0 s, node: client, command: "sysctl -w net.ipv4.tcp_syn_retries=127 net.ipv4.tcp_retries2=255"}
  - {at: 0 s, node: server, command: "sysctl -w net.ipv4.tcp_synack_retries=127"}
sweep: {set_up: {set: [services.*.set_up], values: [connect-first, accept-first, early]}}
"""


def test_twenty_minutes_of_light_cost_programs_their_rounds(run):
    """Two for a transfer; seven for a file: to connect, greet, log in with name and password, and put it, and no more."""
    ran = run(FAR.replace("limits", FAR_FILE + "limits"), f"hosts.*={FAR_HOST}")
    assert ran.cell.completed
    (row,) = ran.rows
    assert float(row["transfer_user_s"]) == pytest.approx(ROUNDS * ROUND_S, abs=1)
    assert float(row["file_user_s"]) == pytest.approx(7 * ROUND_S, abs=10)


def test_twenty_minutes_of_light_cost_gateways_two_rounds_however_clients_are_answered(run):
    ran = run(FAR + FAR_GATEWAYS, jobs=2)
    assert ran.ended == (3, 0, 0)
    for row in ran.rows:
        assert float(row["user_s"]) == pytest.approx(ROUNDS * ROUND_S, abs=2)
