"""Serial links: the channel and PPP against closed forms, and FTP over them. Tolerances are the published ones."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dpkt
import numpy as np
import pytest
from scipy import stats

from scpslab.analysis.collect import measure
from scpslab.engine.virtual import VirtualEngine
from scpslab.plan import schema
from tests.lab.conftest import ERRORS, START, capture, datagrams, network_of, run_network
from tests.lab.ran import Cell

RATE_TOLERANCE = 1e-3
# Protocol field (compressed), frame check, flag: what PPP adds to an IP packet; characters that are escaped come on
# top.
PPP_BYTES = 4
OVER_SERIAL = {"from": "satellite", "to": "ground", "to_ip": "10.7.0.2"}
GROUND = capture("ground", "ppp0")


def ftp(command: str, mode: str, port: int = 21, timeout_s: int = 60) -> dict[str, Any]:
    """A workload: a file of 10 kB by FTP."""
    server = {"server_ip": "10.7.0.2" if command == "put" else "10.7.0.1", "port": port}
    how = {"command": command, "mode": mode, "timeout_ns": timeout_s * 10**9}
    return {"name": "transfer", "kind": "ftp", "bytes": 10_000, "payload_seed": 1} | server | how | START | OVER_SERIAL


def sent(rate_bps: int, seconds: int, packet_bytes: int) -> dict[str, Any]:
    """A workload: datagrams from satellite to ground."""
    return datagrams(rate_bps, seconds, packet_bytes) | OVER_SERIAL


@pytest.fixture
def run_serial(engine: VirtualEngine, tmp_path: Path) -> Callable[..., Cell]:
    """Runs a workload over sgls, captured at ground if not otherwise; `errors`: of the data direction; `route`: options of
    routes.
    """

    def run(
        workload: dict[str, Any],
        errors: dict[str, Any] | None = None,
        route: dict[str, int] | None = None,
        probes: Sequence[dict[str, Any]] = (GROUND,),
        **parameters: object,
    ) -> Cell:
        network = schema.write(network_of("sgls", **parameters))
        ways = {"forward": ERRORS | (errors or {}), "return": ERRORS}
        impairments = [{"link": "serial", "direction": name, "errors": of_it} for name, of_it in ways.items()]
        for end in network["serial_links"][0]["ends"]:
            end["route"] |= route or {}
        cell = {"workloads": [workload], "probes": [*probes], "impairments": impairments}
        return run_network(engine, tmp_path, network, cell)

    return run


def direction(cell: Cell, name: str = "forward") -> dict[str, Any]:
    """The record of a direction of the serial link."""
    return cell.line("serial", event="direction", direction=name)


def frame_bytes(line: dict[str, Any]) -> float:
    """The mean length of a direction's frames."""
    return float(line["delivered_bytes"] - line["taken_before_start_bytes"]) / line["sent_frames"]


@pytest.mark.parametrize("baud", [2400, 9600, 115_200])
def test_rate_holds_within_a_thousandth(run_serial, baud):
    """More is offered than the line takes; full frames arrive at the baud rate, ten bits a byte."""
    cell = run_serial(sent(baud, 30, 1000), forward_rate=f"{baud} bit/s", inherent_delay="0 ms").completed

    times, line = cell.arrival_s("ground"), direction(cell)
    measured_baud = (len(times) - 1) * frame_bytes(line) * 10 / (times[-1] - times[0])

    assert line["lost_frames"] == 0
    assert abs(measured_baud / baud - 1) < RATE_TOLERANCE


@pytest.mark.parametrize(("data_baud", "ack_baud"), [(115_200, 115_200), (115_200, 2_400)])
def test_round_trip_is_both_delays_and_both_frame_times(run_serial, data_baud, ack_baud):
    """Within one byte time of the slower direction (ping prints three digits)."""
    ping = {"name": "rtt", "kind": "ping", "count": 5, "interval_ns": 10**10, "payload_bytes": 56}
    rates = {"forward_rate": f"{data_baud} bit/s", "return_rate": f"{ack_baud} bit/s"}
    delays = {"data_delay": "60 ms", "ack_delay": "3 ms", "inherent_delay": "0 ms"}
    cell = run_serial(ping | START | OVER_SERIAL, **rates, **delays)

    replies = [line["rtt_ms"] for line in cell.records("rtt") if "rtt_ms" in line]
    data, ack = direction(cell, "forward"), direction(cell, "return")
    assert data["sent_frames"] == ack["sent_frames"] == 5
    assert min(frame_bytes(data), frame_bytes(ack)) >= 84 + PPP_BYTES
    expected_ms = 63 + 10_000 * (frame_bytes(data) / data_baud + frame_bytes(ack) / ack_baud)
    assert len(replies) == 5
    assert abs(np.mean(replies) - expected_ms) < 10_000 / ack_baud


def test_frame_loss_follows_the_bit_error_rate(run_serial):
    """Independent errors that never repeat: lost frames and bit errors lie in their binomial intervals of 99.99 %."""
    ber = 1e-5
    cell = run_serial(sent(80_000, 400, 1000), {"model": "independent", "settings": {"ber": ber}}, vector="0 B")

    line = direction(cell)
    # A wrong closing flag takes the next frame with it: one byte more at which a frame can be hit.
    loss = 1 - (1 - ber) ** (8 * (frame_bytes(line) + 1))
    least, most = stats.binom.interval(0.9999, line["sent_frames"], loss)
    bits = 8 * (line["delivered_bytes"] - line["taken_before_start_bytes"])
    fewest, greatest = stats.binom.interval(0.9999, bits, ber)

    assert line["sent_frames"] >= 4000
    assert least <= line["lost_frames"] <= most
    assert fewest <= line["bit_errors"] <= greatest
    assert direction(cell, "return")["bit_errors"] == 0
    # The kernel counts bad frames that follow each other as one error.
    assert 0 < cell.line("serial", node="ground")["received_errors"] <= line["lost_frames"]


def test_a_stored_vector_breaks_exactly_the_frames_it_hits(run_serial, tmp_path):
    """One wrong bit in the 150th byte after the start: the second frame of 100 bytes does not come through."""
    vector = tmp_path / "one.bits"
    vector.write_bytes(bytes(149) + b"\x10" + bytes(1_000_000))
    settings = {"file": str(vector), "sha256": hashlib.sha256(vector.read_bytes()).hexdigest()}
    line = direction(run_serial(sent(8_000, 2, 100), {"model": "vector-file", "settings": settings}))

    assert (line["bit_errors"], line["wrong_bytes"], line["lost_frames"]) == (1, 1, 1)


@pytest.mark.smoke
def test_nothing_arrives_in_an_outage(run_serial):
    """One datagram a second, out from 3.5 s to 6.5 s after the epoch: three are lost, no byte for another reason."""
    cell = run_serial(sent(8_000, 10, 1000), {"outages": [[3_500_000_000, 6_500_000_000]]})

    line, arrivals = direction(cell), cell.arrival_s("ground")
    assert line["lost_frames"] == 3
    assert line["taken_bytes"] == line["delivered_bytes"] + line["outage_bytes"]
    assert not np.any((arrivals > 3.5) & (arrivals < 6.5))


def test_ftp_takes_the_time_of_its_bytes(run):
    """10 kB at 115,200 baud: not faster than the line carries the file, and slower by slow start and set-up only."""
    cell = run("sgls/aero-fig02:test").cell.completed
    values = measure(cell)

    assert values["bytes"] == 10_000
    assert values["payload_match"] is True
    # The line alone needs 0.87 s; the three round trips of initial window 1 and the set-up of the connection need 0.19
    # s at most.
    assert 10_000 * 10 / 115_200 < values["transfer_s"] < 10_000 * 10 / 115_200 + 4 * 0.0466 + 0.1
    # 46.6 ms, and a SYN and its answer of some 60 bytes each at 11,520 bytes/s.
    assert 0.0466 + 2 * 50 / 11_520 < values["handshake_rtt_s"] < 0.0466 + 2 * 80 / 11_520
    assert values["serial_data_lost_frames"] == 0
    assert values["rtos"] == 0


def test_hosts_settings_reach_the_route_to_the_peer(run_serial):
    """Every option at once; what the cell ran on names the interface that pppd made."""
    route = {"initcwnd": 1, "initrwnd": 3, "advmss": 536, "rto_min_ms": 1000, "quickack": 1}
    cell = run_serial(ftp("put", "passive"), route=route).completed

    assert cell.environment["ground"]["interfaces"]["ppp0"] == {"mtu_bytes": 1500}
    packets = cell.packets("ground")
    assert {mss_bytes for *_, mss_bytes in cell.options("ground", dpkt.tcp.TCP_OPT_MSS)} == {536}
    # Every segment of the file is acknowledged by itself.
    is_data = packets.payload_bytes > 500
    is_bare = (packets.payload_bytes == 0) & np.isin(packets.destination_port, packets.source_port[is_data])
    assert is_data.sum() >= 10_000 // 536
    assert is_bare.sum() >= is_data.sum()


def test_an_impatient_transfer_is_incomplete(run_serial):
    """A file that needs 10 s and a timeout of 5 s: the cell ends in time and says why."""
    cell = run_serial(ftp("put", "passive", timeout_s=5), forward_rate="9600 bit/s")

    assert cell.status == "incomplete"
    assert "timeout" in cell.reason
    assert cell.virtual_s < 8


@pytest.mark.parametrize(("command", "mode"), [("put", "active"), ("put", "passive"), ("get", "passive")])
def test_every_way_of_ftp_delivers_the_file(run_serial, command, mode):
    """The default of scenarios, get in active mode, is what the scenario above does."""
    cell = run_serial(ftp(command, mode, port=2121)).completed

    file = cell.line("transfer", event="file")
    assert (file["bytes"], file["sha256"]) == (10_000, file["sent_sha256"])


def test_a_capture_without_a_filter_has_the_bytes_of_tcpdump(run_serial):
    """Both ends' packets, behind the header that Linux makes up where a link has none."""
    lengths = (54, 96)
    probes = [GROUND | {"name": f"without-{n}", "snaplen_bytes": n} for n in lengths]
    probes += [GROUND | {"name": f"with-{n}", "snaplen_bytes": n, "filter": "ip or not ip"} for n in lengths]
    cell = run_serial(ftp("put", "passive"), probes=probes).completed

    for n in lengths:
        without, with_ = (cell.folder / "captures" / f"{name}-{n}.pcap" for name in ("without", "with"))
        assert cell.log(f"capture-without-{n}").startswith("labtool:")
        assert cell.log(f"capture-with-{n}").startswith("tcpdump:")
        assert len(without.read_bytes()) > 20 * (16 + n)
        assert without.read_bytes() == with_.read_bytes()
