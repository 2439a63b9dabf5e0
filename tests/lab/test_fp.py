"""The file protocol on hosts: over SCPS-TP, the kernel's TCP and between the two, through errors, outages, kills."""

import pytest

from tests.lab.ran import cases

SCPS = "{stack: scps, preset: nmsu-vj}"
KERNEL = "{preset: linux-2.2}"


def transfer(**settings):
    """Overrides of the transfer."""
    return [f"workloads.transfer.{key}={value}" for key, value in settings.items()]


@pytest.fixture
def restart(run):
    """Runs the one cell of fp/restart over SCPS-TP."""
    return lambda *overrides: run("fp/restart:test", "sweep={}", f"hosts.*={SCPS}", *overrides)


def assert_whole(row):
    """The cell completed, checksum and length agree, and no byte is lost, doubled or damaged."""
    assert (row["status"], row["payload_match"], row["integrity_ok"]) == ("completed", "true", "true"), row["reason"]
    assert (row["lost_bytes"], row["duplicated_bytes"], row["damaged_bytes"]) == ("0", "0", "0")


ENDS = {"scps": (SCPS, SCPS), "kernel": (KERNEL, KERNEL), "to-kernel": (SCPS, KERNEL), "to-scps": (KERNEL, SCPS)}
WAYS = {"get": "active", "put": "passive"}


@pytest.fixture(scope="module")
def arrived(run_once):
    """A row for each pair of ends and each way of 20 kB over the serial line at 1e-5."""
    ends = {name: f"{{hosts.satellite: {source}, hosts.ground: {sink}}}" for name, (source, sink) in ENDS.items()}
    ways = {
        name: f"{{workloads.transfer.command: {name}, workloads.transfer.mode: {mode}}}" for name, mode in WAYS.items()
    }
    file = ("links.serial.*.errors.ber=1e-5", *transfer(kind="fp", size="20 kB"))
    sweep = f"sweep={{{cases('ends', ends)}, {cases('way', ways)}}}"
    rows = run_once("sgls/aero-fig02:test", sweep, *file, jobs=2).rows
    return {(row["ends"], row["way"]): row for row in rows}


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("way", WAYS)
def test_a_file_arrives_whoever_is_at_the_ends(ends, way, arrived):
    """Not faster than the line carries it."""
    assert_whole(row := arrived[ends, way])
    assert float(row["transfer_s"]) > 20_000 * 10 / 115_200
    assert int(row["wire_data_bytes"]) > 20_000


@pytest.mark.smoke
def test_a_record_costs_the_record_on_the_wire(run):
    """2 kB in a file of 64 kB are replaced: what is sent is the record and its description."""
    row = run("fp/records:test").row

    assert_whole(row)
    assert int(row["bytes"]) == 64_000
    assert 2_000 < int(row["wire_data_bytes"]) < 4_000


def test_an_outage_is_outlived_without_a_hand(run):
    ran = run("fp/outages:test")

    assert_whole(row := ran.row)
    assert int(row["restarts"]) >= 1
    assert int(row["rtos"]) >= 1
    assert 0 < int(row["resumed_at_bytes"]) < 256_000
    # What was stored before the outage is not sent again.
    assert int(row["moved_bytes"]) == 256_000
    assert ran.cell.lines("serial", event="direction")[0]["outage_bytes"] > 0


@pytest.mark.parametrize("stop", ["interrupt", "abort", "kill-client", "kill-server"])
def test_what_is_stopped_in_its_middle_is_whole_in_the_end(stop, restart):
    ran = restart(*transfer(stop=stop, size="64 kB"))

    assert_whole(row := ran.row)
    assert int(row["restarts"]) == 1
    assert (row["resumed_at_bytes"] == "") == (stop == "abort")
    assert len(ran.cell.lines("transfer", event="stop")) == stop.startswith("kill")


def test_a_stop_that_did_not_happen_is_no_success(restart):
    """The file is at the client before the user's word can be: the cell does not claim to have tested an interrupt."""
    row = restart(*transfer(stop="interrupt", stop_at="999 B", size="1 kB", command="get")).row

    assert row["status"] == "incomplete"
    assert "expected it to be interrupted" in row["reason"]


def test_best_effort_fills_what_it_gives_up(restart):
    """A third of the packets is hit: the reader passes holes, and the file has its length, whatever was filled."""
    errors = "links.serial.forward.errors={model: independent, ber: 3e-5}"
    row = restart(errors, *transfer(bets="true", size="40 kB")).row

    assert row["status"] == "completed", row["reason"]
    assert int(row["bytes"]) == 40_000
    assert int(row["filled_bytes"]) > 0
    wrong = int(row["damaged_bytes"]) + int(row["lost_bytes"])
    # Zeros in place of random bytes: one in 256 is right by chance.
    assert int(row["filled_bytes"]) * 0.97 < wrong <= int(row["filled_bytes"])


def test_the_same_cell_twice_has_the_same_bytes(restart):
    """Client, server, kill and restart are part of what is reproducible."""
    first, second = (restart("workloads.transfer.size=64 kB").digests for _ in range(2))

    assert len(first) > 10
    assert first == second


def test_a_file_comes_from_deep_space_only_with_a_long_wait(run):
    """Three minutes there and back: connection, greeting, PORT, the data connection's SYN and its answer, data and reply."""
    far = ("links.hop.*.delay=90 s", "links.hop.forward.errors.ber=0", *transfer(size="20 kB"))
    row = run("../assignments/deep-space/file", *far).row

    assert_whole(row)
    assert float(row["client_total_s"]) / 180 == pytest.approx(6, rel=0.01)
    assert run("../assignments/deep-space/file", *far, *transfer(wait_timeout="60 s")).row["status"] == "incomplete"
