"""Gateways: split kernel TCP gains on a lossy hop, programs on SCPS hosts go through their own, and accounts close."""

import json
from typing import Any

import dpkt
import pytest

from scpslab.measure.states import NONE
from scpslab.studio.cell import cell_data
from tests.lab.ran import Cell, cases
from tests.lab.terminal import Terminal

SIZE = 1_000_000
SCENARIO = "links/gateway:test"


@pytest.fixture(scope="module")
def both(run_once):
    """The run of the variant `test`: end to end with CUBIC, and split."""
    return run_once(SCENARIO)


def test_a_split_connection_does_not_wait_for_each_loss(both):
    cells = both.by("path")

    assert both.ended == (2, 0, 0)
    # At a BER of 1e-5 every ninth packet is lost.
    assert cells["split"].virtual_s < 10 < cells["cubic"].virtual_s


def test_the_account_of_each_gateway_closes(both):
    cell = both.by("path")["split"]

    for name, side in (("near", "from_lan"), ("far", "from_wan")):
        connections = cell.lines(name, event="connection")
        assert sum(line[side]["delivered"] for line in connections) >= SIZE
        # The cell ends with the workload; what is then left are FINs.
        assert all(line["end"] in ("finished", "the gateway stopped") for line in connections)
        for account in (line[way] for line in connections for way in ("from_lan", "from_wan")):
            assert account["received"] == account["delivered"]
            assert account["lost"] == account["buffered"] == 0
        assert "cpu_s" not in counters(cell, name)


def test_the_table_of_results_has_the_accounts(both):
    rows = {row["path"]: row for row in both.rows}
    split, whole = rows["split"], rows["cubic"]

    for name, side, other in (("near", "from_lan", "from_wan"), ("far", "from_wan", "from_lan")):
        account = {what: split[f"{name}_{side}_{what}_bytes"] for what in ("received", "delivered", "buffered", "lost")}
        assert account == {"received": str(SIZE), "delivered": str(SIZE), "buffered": "0", "lost": "0"}
        assert split[f"{name}_{other}_lost_bytes"] == "0"
        assert split[f"{name}_closes"] == "true"
        assert {whole[column] for column in split if column.startswith(f"{name}_")} == {""}
    # At a BER of 1e-5 every ninth of 700 packets is lost.
    assert 50 < int(split["near_resends"]) < 150


def test_a_gateway_that_cannot_start_fails_the_cell_and_says_why(run):
    own_lan = {"kind": "gateway", "name": "near", "node": "g1", "peer": "10.9.0.2", "far": ["10.1.0.0/24"]}
    services = json.dumps([own_lan | {"rate": "2 Mbit/s", "rtt": "1 s"}])
    cell = run(SCENARIO, "sweep.path=[split]", f"services={services}").cell

    assert cell.status == "failed"
    assert cell.reason.startswith("ChildProcessError: service near on g1: scps gateway ended with exit code 3")
    assert "10.1.0.0/24 is routed to" in cell.reason


def test_a_page_gains_and_requests_in_a_row_do_not(run):
    took_s = {}
    for cell in run("links/gateway-applications:test").cells:
        command = cell.line("events", node="client")
        assert command["exit_code"] == 0, cell.plan.cell.axes
        took_s[cell.plan.cell.axes["application"], cell.plan.cell.axes["path"]] = command["end_t_s"] - command["t_s"]

    # Thirty objects over one connection of HTTP/2: slow start costs round trips.
    assert took_s["page-of-30-http2", "split"] < 0.95 * took_s["page-of-30-http2", "cubic"]
    # A hundred requests one after another take a hundred round trips of 102 ms, whoever carries them.
    assert min(took_s["requests", "cubic"], took_s["requests", "split"]) > 10.2
    assert took_s["requests", "split"] == pytest.approx(took_s["requests", "cubic"], rel=0.03)


def test_ten_transfers_at_once_complete_with_their_accounts(run):
    ran = run("links/gateway-congested:test")

    assert ran.ended == (2, 0, 0)
    for name in ("near", "far"):
        assert len(ran.by("path")["split"].lines(name, event="connection")) == 10
        assert counters(ran.by("path")["split"], name)
    assert not [one for one in ran.by("path")["cubic"].states if one.gateway]
    assert_states_are_of_ten(ran.by("path")["split"])


def assert_states_are_of_ten(cell: Cell) -> None:
    """Each connection of the near gateway has its states, and in the studio they are those of what it sends to the
    other gateway. Nothing is faster than the link, whose round trip the first SYN took alone.
    """
    near = [one for one in cell.states if one.gateway == "g1"]
    clients = {line["client"]: line for line in cell.lines("near", event="connection")}
    assert sorted(one.local for one in near) == sorted(clients)
    assert not [one for one in cell.states if one.local.startswith("0.0.0.0")], "a raw socket is no connection"
    (hop,) = [link for link in cell.plan.network.links if link.name == "hop"]
    link_us = sum(one.first_delay_ns for one in hop.directions) / 1000
    for one in near:
        assert set(one.cwnd_bytes.tolist()) == {NONE}, "a rate alone has no window"
        assert one.srtt_us[one.srtt_us > 0].min() > link_us
        ended_ns = clients[one.local]["t_s"] * 1e9
        # The last acknowledgement comes up to a round trip after the server's end.
        assert ended_ns - 2e9 < one.t_ns[-1] <= ended_ns
    meta = cell_data(cell).meta
    (udp,) = [place for place, one in enumerate(meta["conversations"]) if one["protocol"] == "UDP"]
    of_gateways = [one["ends"][0] for one in meta["series"] if one["conversation"] == udp and one["way"] == 0]
    assert sorted(of_gateways) == sorted(clients)


OUTAGES_S = {"1s": 1, "10s": 10, "60s": 60, "600s": 600}


@pytest.fixture(scope="module")
def waited(run_once):
    """A cell for each outage: the hop is dead both ways in the middle of the transfer."""
    outages = {
        name: f"{{links.hop.*.errors.outages: [{{from: 2 s, to: {2 + outage_s} s}}]}}"
        for name, outage_s in OUTAGES_S.items()
    }
    only = ("sweep.path=[split]", "sweep.ber=[0]", "sweep.size=[3 MB]")
    return run_once(SCENARIO, f"sweep.{cases('outage', outages).replace(': ', '=', 1)}", *only, jobs=2).by("outage")


@pytest.mark.parametrize("outage", OUTAGES_S)
def test_an_outage_of_the_link_is_waited_for(waited, outage):
    """Nothing is lost, and nobody gives up."""
    cell = waited[outage].completed
    received = cell.line("transfer", event="receiver")

    assert (received["bytes"], received["wrong_bytes"]) == (3_000_000, 0)
    assert counters(cell, "near")
    assert counters(cell, "far")
    assert 2 + OUTAGES_S[outage] < received["last_data_t_s"]


# A satellite hop of 2 Mbit/s on which one of nine packets is lost.
OWN = """
hosts:
  h1: {stack: scps, preset: fy97-rate}
  h2: {stack: scps, preset: fy97-rate}
links:
  hop:
    forward: {errors: {ber: 1e-5}}
    return: {errors: {ber: 1e-5}}
probes:
  - {kind: capture, node: h1}
  - {kind: capture, node: h2}
seed: 11
limits: {lab_time: 600 s, wall_time: 600 s}
"""
IPERF3 = """workloads:
  - {kind: iperf3, name: flow, from: h1, to: h2, duration: 60 s}
"""
CURL = """services:
  - {kind: command, name: web, node: h2, ready_port: 8080,
     command: "mkdir /tmp/www && head -c 400000 /dev/urandom > /tmp/www/page && exec python3 -m http.server 8080 --directory /tmp/www"}
events:
  - {at: 1 s, node: h1, timeout: 100 s, command: "curl -sSf http://10.0.0.2:8080/page | sha256sum"}
  - {at: 1 s, node: h2, command: "sha256sum < /tmp/www/page"}
  - {at: 2 s, node: h1, timeout: 100 s, command: "curl -sS http://10.0.0.2:9/; test $? = 7"}
  - {at: 3 s, node: h1, command: "curl -sS --max-time 5 http://127.0.0.1:9/; test $? = 7"}
  - {at: 4 s, node: h1, timeout: 60 s, command: "ping -c 2 10.0.0.2"}
"""
NO_ERRORS, KERNEL = "links.hop.*.errors={ber: 0}", "{preset: modern}"
SCPS_CAPABILITIES = 20
RATE_BPS = 2_000_000
H1, H2 = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])


def counters(cell: Cell, gateway: str) -> dict[str, Any]:
    """The last line of a gateway's account, which closes."""
    line = cell.records(gateway)[-1]
    assert (line["event"], line["closes"]) == ("counters", True)
    return line


def packets(cell: Cell, node: str) -> list[dpkt.ip.IP]:
    """The IP packets of a host's capture."""
    with (cell.folder / "captures" / f"{node}.pcap").open("rb") as file:
        frames = [dpkt.ethernet.Ethernet(content) for _, content in dpkt.pcap.Reader(file)]
    return [frame.data for frame in frames if isinstance(frame.data, dpkt.ip.IP)]


def openings(cell: Cell, node: str) -> set[tuple[bytes, bool, bool]]:
    """Every SYN on a host's link: who sent it, whether it answers one, whether it offers SCPS."""
    tcp = [(packet.src, packet.data) for packet in packets(cell, node) if packet.p == dpkt.ip.IP_PROTO_TCP]
    return {
        (who, bool(one.flags & dpkt.tcp.TH_ACK), SCPS_CAPABILITIES in dict(dpkt.tcp.parse_opts(one.opts)))
        for who, one in tcp
        if one.flags & dpkt.tcp.TH_SYN
    }


def test_iperf3_runs_over_scps_and_fills_the_link_that_loses_every_ninth_packet(run):
    ran = run(OWN + IPERF3)
    cell = ran.cell.completed
    received = cell.line("flow")["result"]["end"]["sum_received"]

    # Rate control alone: the rate but for headers, what is lost, and what is under way when it ends.
    assert 0.7 < received["bits_per_second"] / RATE_BPS < 0.97
    assert openings(cell, "h1") == {(H1, False, True), (H2, True, True)}
    sender, receiver = counters(cell, "gateway-h1"), counters(cell, "gateway-h2")
    assert sender["from_lan"]["delivered"] == pytest.approx(receiver["from_wan"]["delivered"], rel=0.05)
    assert sender["wan"]["resends"] > 500
    assert ran.row["stack"] == "scps fy97-rate"
    assert ran.row["retransmissions"] == str(sender["wan"]["resends"])
    # Nothing is lost inside the host.
    assert sender["lan"]["resends"] < 5


def test_the_same_cell_has_the_same_bytes_twice(run):
    first, second = (run(OWN + IPERF3, "workloads.flow.duration=10 s").digests for _ in range(2))

    assert first == second


@pytest.mark.parametrize(("command", "mode"), [("get", "active"), ("put", "passive")])
def test_files_come_by_ftp_whoever_opens_the_data_connection(run, command, mode):
    workload = f"{{kind: ftp, name: file, from: h1, to: h2, size: 1 MB, command: {command}, mode: {mode}}}"
    cell = run(OWN + f"workloads: [{workload}]\n").cell.completed
    file = cell.line("file", event="file")

    assert file["sha256"] == file["sent_sha256"]
    control, data = sorted(
        line["from_lan"]["delivered"] + line["from_wan"]["delivered"]
        for line in cell.lines("gateway-h1", event="connection")
    )
    assert control < 900_000 < data


def test_a_page_comes_by_curl_a_refusal_is_one_and_ping_goes_its_own_way(run):
    cell = run(OWN + CURL, NO_ERRORS).cell.completed

    assert cell.log("events-1-h1") == cell.log("events-2-h2")
    assert "2 received" in cell.log("events-5-h1")
    # No router, and no gateway, has reduced it.
    assert "ttl=64" in cell.log("events-5-h1")
    total = counters(cell, "gateway-h1")
    # The connection inside the host is none of the gateway's.
    assert (total["begun"], total["finished"], total["broken"]) == (2, 1, 1)
    assert cell.line("gateway-h1", event="connection", end="finished")["from_wan"]["delivered"] > 400_000
    # The gateway writes packets of its own with 250, which the host forwards; those of ICMP are its kernel's.
    lives = {(packet.p, packet.ttl) for packet in packets(cell, "h2") if packet.src == H1}
    assert lives == {(dpkt.ip.IP_PROTO_TCP, 249), (dpkt.ip.IP_PROTO_ICMP, 64)}


def test_a_kernel_host_at_the_other_end_speaks_tcp(run):
    cell = run(OWN + IPERF3, "workloads.flow.duration=20 s", f"hosts.h2={KERNEL}", NO_ERRORS).cell.completed

    assert openings(cell, "h1") == {(H1, False, True), (H2, True, False)}
    assert cell.line("flow")["result"]["end"]["sum_received"]["bytes"] > 1_000_000
    assert counters(cell, "gateway-h1")["from_lan"]["delivered"] > 1_000_000
    assert not (cell.folder / "records" / "gateway-h2.jsonl").exists()


def test_a_kernel_host_reaches_a_server_on_a_host_of_scps(run):
    cell = run(OWN + CURL, f"hosts.h1={KERNEL}", NO_ERRORS).cell.completed

    assert cell.log("events-1-h1") == cell.log("events-2-h2")
    # The client offers no SCPS, and the server's gateway answers without.
    assert not any(offers for _, _, offers in openings(cell, "h2"))
    assert counters(cell, "gateway-h2")["from_lan"]["delivered"] > 400_000


def test_bulk_and_unmodified_programs_share_a_host(run):
    cell = run(OWN + IPERF3 + "  - {kind: bulk, name: transfer, from: h1, to: h2, size: 500 kB}\n").cell.completed
    receiver = cell.line("transfer", event="receiver")

    assert (receiver["bytes"], receiver["wrong_bytes"]) == (500_000, 0)


@pytest.mark.parametrize("node", ["h1", "h2"])
def test_a_gateway_that_is_killed_fails_the_cell_with_a_word(run, node):
    step = {"at": "10 s", "node": node, "command": "pkill -KILL -x scps"}
    cell = run(OWN + IPERF3, f"events={json.dumps([step])}").cell

    assert cell.status == "failed"
    assert (
        f"service gateway-{node} on {node}: scps gateway ended with SIGKILL (as when memory runs out: limits.memory) while the cell ran"
        in cell.reason
    )
    # What it knew until then; h1 has the acknowledgements of the data.
    last_s = max(one.t_ns[-1] for one in cell.states if one.gateway == node) / 1e9
    assert (9 if node == "h1" else 0) < last_s <= 10


def test_what_is_typed_on_a_host_of_scps_goes_through_its_gateway_and_the_prompt_says_once_that_one_has_ended():
    with Terminal("point_to_point", "--stack", "*=scps:fy97-rate") as terminal:
        terminal.do("h2 python3 -m http.server 8080 --directory /etc > /dev/null 2>&1 &")
        terminal.do("h1 sleep 2")
        assert "127.0.0.1" in terminal.do("h1 curl -sS http://10.0.0.2:8080/hosts")
        assert int(terminal.do("h1 cat /sys/class/net/gw-wan/statistics/rx_packets")) > 3
        shown = terminal.do("h1 pkill -KILL -x scps") + terminal.do("h1 sleep 1")
        assert shown.count("*** service gateway-h1 on h1: scps gateway has ended") == 1
        assert "service gateway-h2" not in shown
        assert "ended" not in terminal.do("h2 true")
        terminal.type("exit\n")
        assert terminal.ends_within(20) == 0
