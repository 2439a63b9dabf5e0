"""Serial links: the channel and PPP against closed forms, and FTP over them. Tolerances are the published ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from scpslab.analysis.collect import measure
from scpslab.analysis.run import open_run
from scpslab.engine.virtual import VirtualEngine
from scpslab.plan import Plan, read_network, schema
from scpslab.plan.topology import catalogue
from scpslab.running import RunOptions, run_scenario
from scpslab.setup import silent
from tests.lab.conftest import CELL, ERRORS, Outcome, capture, datagrams, run_network
from tests.lab.test_determinism import digests

pytestmark = pytest.mark.lab

RATE_TOLERANCE = 1e-3
# Protocol field (compressed), frame check, flag: what PPP adds to an IP packet; characters that are escaped come on
# top.
PPP_BYTES = 4
FTP = {
    "name": "transfer",
    "kind": "ftp",
    "start_ns": 10**9,
    "required": True,
    "bytes": 10_000,
    "command": "put",
    "mode": "passive",
    "port": 21,
}
FTP |= {"payload_seed": 1, "patience_ns": 60 * 10**9}


@pytest.fixture
def run_serial(engine: VirtualEngine, tmp_path: Path) -> Callable[..., Outcome]:
    """Runs workloads over the serial link of sgls; `data`: errors of that direction; `route`: options of the routes to
    the peer.
    """

    def run(
        workloads: list[dict[str, Any]],
        probes: tuple[dict[str, Any], ...] = (),
        data: dict[str, Any] | None = None,
        route: dict[str, int] | None = None,
        **parameters: object,
    ) -> Outcome:
        module = catalogue.module("sgls")
        network = schema.write(module.describe(module.PARAMETERS.read(parameters)).plan())
        both = zip(("data", "ack"), (data, None), strict=True)
        impairments = [
            {"link": "serial", "direction": name, "errors": ERRORS | (errors or {})} for name, errors in both
        ]
        for end in network["serial_links"][0]["ends"]:
            end["route"] |= route or {}
        engine.prepare(silent, [Plan(network=read_network(network), cell=CELL)])
        return run_network(
            engine, tmp_path, network, {"workloads": workloads, "probes": list(probes), "impairments": impairments}
        )

    return run


def over_serial(workload: dict[str, Any]) -> dict[str, Any]:
    """The workload from satellite to ground."""
    return workload | {"from": "satellite", "to": "ground", "to_ip": "10.7.0.2"}


def ping(count: int, payload_bytes: int) -> dict[str, Any]:
    """A workload: echo requests, ten seconds apart."""
    common = {"name": "rtt", "kind": "ping", "start_ns": 10**9, "required": True}
    return over_serial(common | {"count": count, "interval_ns": 10**10, "payload_bytes": payload_bytes})


def direction(outcome: Outcome, name: str) -> dict[str, Any]:
    """The record of a direction of the serial link."""
    return next(
        line for line in outcome.records("serial") if line["event"] == "direction" and line["direction"] == name
    )


@pytest.mark.parametrize("baud", [2400, 9600, 115_200])
def test_rate_holds_within_a_thousandth(run_serial, baud):
    """More is offered than the line takes; full frames arrive at the baud rate, ten bits a byte."""
    probe = capture("ground") | {"interface": "ppp0"}
    outcome = run_serial(
        [over_serial(datagrams(baud, 30, 1000))], (probe,), data_rate=f"{baud} bit/s", inherent_delay="0 ms"
    )

    times = outcome.arrival_s("ground")
    line = direction(outcome, "data")
    frame_bytes = (line["delivered_bytes"] - line["taken_before_start_bytes"]) / line["sent_frames"]
    measured_baud = (len(times) - 1) * frame_bytes * 10 / (times[-1] - times[0])

    assert outcome.status["status"] == "completed"
    assert line["lost_frames"] == 0
    assert abs(measured_baud / baud - 1) < RATE_TOLERANCE


@pytest.mark.parametrize(("data_baud", "ack_baud"), [(115_200, 115_200), (115_200, 2_400)])
def test_round_trip_is_both_delays_and_both_frame_times(run_serial, data_baud, ack_baud):
    """Within one byte time of the slower direction (ping prints three digits)."""
    outcome = run_serial(
        [ping(5, 56)],
        data_rate=f"{data_baud} bit/s",
        ack_rate=f"{ack_baud} bit/s",
        data_delay="60 ms",
        ack_delay="3 ms",
        inherent_delay="0 ms",
    )

    replies = [line["rtt_ms"] for line in outcome.records("rtt") if "rtt_ms" in line]
    frame_bytes = {}
    for name in ("data", "ack"):
        line = direction(outcome, name)
        assert line["sent_frames"] == 5
        frame_bytes[name] = (line["delivered_bytes"] - line["taken_before_start_bytes"]) / 5
        assert frame_bytes[name] >= 84 + PPP_BYTES
    expected_ms = 63 + 10_000 * (frame_bytes["data"] / data_baud + frame_bytes["ack"] / ack_baud)

    assert len(replies) == 5
    assert abs(np.mean(replies) - expected_ms) < 10_000 / ack_baud


def test_frame_loss_follows_the_bit_error_rate(run_serial):
    """Independent errors that never repeat: frames lost lie in the binomial interval of 99.99 %, and bit errors in
    theirs.
    """
    ber = 1e-5
    errors = {"model": "independent", "settings": {"ber": ber}}
    outcome = run_serial([over_serial(datagrams(80_000, 400, 1000))], data=errors, vector="0 B")

    line = direction(outcome, "data")
    frame_bytes = (line["delivered_bytes"] - line["taken_before_start_bytes"]) / line["sent_frames"]
    # A wrong closing flag takes the next frame with it: one byte more at which a frame can be hit.
    loss = 1 - (1 - ber) ** (8 * (frame_bytes + 1))
    least, most = stats.binom.interval(0.9999, line["sent_frames"], loss)
    bits = 8 * (line["delivered_bytes"] - line["taken_before_start_bytes"])
    fewest, greatest = stats.binom.interval(0.9999, bits, ber)

    assert line["sent_frames"] >= 4000
    assert least <= line["lost_frames"] <= most
    assert fewest <= line["bit_errors"] <= greatest
    assert direction(outcome, "ack")["bit_errors"] == 0
    # The kernel counts bad frames that follow each other as one error.
    (ground,) = (record for record in outcome.records("serial") if record.get("node") == "ground")
    assert 0 < ground["received_errors"] <= line["lost_frames"]


def test_a_stored_vector_breaks_exactly_the_frames_it_hits(run_serial, tmp_path):
    """One wrong bit in the 150th byte after the start: the second frame of 100 bytes does not come through."""
    vector = tmp_path / "one.bits"
    vector.write_bytes(bytes(149) + b"\x10" + bytes(1_000_000))
    errors = {
        "model": "vector-file",
        "settings": {"file": str(vector), "sha256": hashlib.sha256(vector.read_bytes()).hexdigest()},
    }
    outcome = run_serial([over_serial(datagrams(8_000, 2, 100))], data=errors)

    line = direction(outcome, "data")
    assert (line["bit_errors"], line["wrong_bytes"], line["lost_frames"]) == (1, 1, 1)


@pytest.mark.smoke
def test_nothing_arrives_in_an_outage(run_serial):
    """One datagram a second, out from 3.5 s to 6.5 s after the epoch: three are lost, no byte for another reason."""
    probe = capture("ground") | {"interface": "ppp0"}
    errors = {"outages": [[3_500_000_000, 6_500_000_000]]}
    outcome = run_serial([over_serial(datagrams(8_000, 10, 1000))], (probe,), data=errors)

    line = direction(outcome, "data")
    arrivals = outcome.arrival_s("ground")
    assert line["lost_frames"] == 3
    assert line["taken_bytes"] == line["delivered_bytes"] + line["outage_bytes"]
    assert not np.any((arrivals > 3.5) & (arrivals < 6.5))


def test_ftp_takes_the_time_of_its_bytes(tmp_path):
    """10 kB at 115,200 baud: not faster than the line carries the file, and slower by slow start and set-up only."""
    folder = run_scenario("sgls/aero-fig02:test", RunOptions(use_cache=False, out=tmp_path)).folder
    (cell,) = open_run(folder).cells
    values = measure(cell)

    assert cell.status == "completed"
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
    """Every option that a host can have of its routes, at once; what the cell ran on names the interface that pppd
    made.
    """
    route = {"initcwnd": 1, "initrwnd": 3, "advmss": 536, "rto_min_ms": 1000, "quickack": 1}
    outcome = run_serial(
        [over_serial(FTP | {"server_ip": "10.7.0.2"})], (capture("ground") | {"interface": "ppp0"},), route=route
    )

    assert outcome.status["status"] == "completed", outcome.status["reason"]
    nodes = json.loads((outcome.folder / "environment.json").read_text())["nodes"]
    assert nodes["ground"]["interfaces"]["ppp0"] == {"mtu_bytes": 1500}
    packets = outcome.packets("ground")
    assert set(packets.mss_bytes.tolist()) == {-1, 536}
    # Every segment of the file is acknowledged by itself.
    is_data = packets.payload_bytes > 500
    is_bare = (packets.payload_bytes == 0) & np.isin(packets.destination_port, packets.source_port[is_data])
    assert is_data.sum() >= 10_000 // 536
    assert is_bare.sum() >= is_data.sum()


def test_two_runs_give_the_same_bytes(tmp_path):
    """The channel, PPP, vsftpd and curl add nothing of the machine."""
    runs = [
        run_scenario("sgls/itc-unbalanced:test", RunOptions(use_cache=False, out=tmp_path / name)).folder
        for name in ("a", "b")
    ]
    assert digests(runs[0]) == digests(runs[1])


def test_an_impatient_transfer_is_incomplete(run_serial):
    """A file that needs 10 s and a patience of 5 s: the cell ends in time and says why."""
    ftp = FTP | {"patience_ns": 5 * 10**9, "server_ip": "10.7.0.2"}
    outcome = run_serial([over_serial(ftp)], data_rate="9600 bit/s")

    assert outcome.status["status"] == "incomplete"
    assert "patience" in outcome.status["reason"]
    assert outcome.status["virtual_s"] < 8


@pytest.mark.parametrize(("command", "mode"), [("put", "active"), ("put", "passive"), ("get", "passive")])
def test_every_way_of_ftp_delivers_the_file(run_serial, command, mode):
    """The default of scenarios, get in active mode, is what the scenario above does."""
    ftp = FTP | {
        "command": command,
        "mode": mode,
        "port": 2121,
        "server_ip": "10.7.0.2" if command == "put" else "10.7.0.1",
    }
    outcome = run_serial([over_serial(ftp)])

    assert outcome.status["status"] == "completed", outcome.status["reason"]
    (file,) = (line for line in outcome.records("transfer") if line["event"] == "file")
    assert file["bytes"] == 10_000
    assert file["sha256"] == file["sent_sha256"]
