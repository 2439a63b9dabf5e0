"""A serial link's plan in the words of `scps channel` and pppd."""

from pathlib import Path

import pytest

from scpslab.lab.serial import channel_errors, channel_options, crossing_ns, pppd_options
from scpslab.plan import schema
from scpslab.plan.cell import CellPlan, Limits
from tests.networks import network_of

ERRORS = {"model": "none", "action": "drop", "settings": {}, "seed": "5c" * 32, "vector_errors": 65536}
ERRORS |= {"drop_packets": [], "drop_min_bytes": 0, "outages": []}
GILBERT_ELLIOTT = {"good_to_bad_per_bit": 1e-06, "bad_to_good_per_bit": 0.001, "ber_good": 0.0, "ber_bad": 0.01}


def serial_link(**parameters):
    return network_of("sgls", **parameters).serial_links[0]


def cell(data_errors=None):
    errors = {"forward": ERRORS | (data_errors or {}), "return": ERRORS}
    impairments = [{"link": "serial", "direction": name, "errors": one} for name, one in errors.items()]
    limits = Limits(virtual_s=60, wall_s=60)
    plain = CellPlan(id="r1", scenario="test", axes={}, repeat=1, kernel_seed="", limits=limits)
    return schema.read(CellPlan, schema.write(plain) | {"impairments": impairments})


def words(options: list[str], option: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in options[options.index(option) + 1].split(","))


def test_each_direction_has_its_own_rate_and_delay():
    options = channel_options(serial_link(return_rate="2400 bit/s", data_delay="120 ms"), Path("/vectors"))
    data, ack = words(options, "--a-to-b"), words(options, "--b-to-a")
    assert (data["baud"], data["delay-ms"]) == ("115200", "143.300000")
    assert (ack["baud"], ack["delay-ms"]) == ("2400", "23.300000")


def test_frames_are_handed_on_at_their_flag():
    both = words(channel_options(serial_link(), Path("/vectors")), "--both")
    assert (both["bits"], both["flush"], both["period"], both["buffer"]) == ("10", "0x7e", "1048576", "1048576")


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ({"model": "none", "settings": {}}, {}),
        ({"model": "independent", "settings": {"ber": 1e-05}}, {"errors": "independent", "ber": "1e-05"}),
        (
            {"model": "clustered", "settings": {"ber": 1e-05, "mean_errors_per_burst": 4.0, "mean_gap_in_burst": 3.0}},
            {"errors": "clustered", "ber": "1e-05", "burst-errors": "4.0", "burst-gap": "3.0"},
        ),
        (
            {"model": "gilbert-elliott", "settings": GILBERT_ELLIOTT},
            {"errors": "gilbert-elliott", "p-good-bad": "1e-06", "p-bad-good": "0.001", "ber-good": "0.0"}
            | {"ber-bad": "0.01"},
        ),
        (
            {"model": "vector-file", "settings": {"file": "/home/a.bits", "sha256": "5c" * 32}},
            {"errors": "file", "file": "/vectors/serial-forward.bits"},
        ),
        (
            {"model": "none", "settings": {}, "outages": [[10 * 10**9, 125 * 10**8]]},
            {"outage": "10.000000000..12.500000000"},
        ),
    ],
)
def test_every_error_model_has_its_words(errors, expected):
    text = channel_errors(serial_link(), cell(errors), Path("/vectors"))
    lines = dict(line.split(" ", 1) for line in text.splitlines() if " " in line)
    assert dict(pair.split("=", 1) for pair in lines["a-to-b"].split(",") if pair) == expected


def test_the_seed_is_the_plan_s():
    assert channel_errors(serial_link(), cell(), Path("/vectors")).splitlines()[0] == f"seed={int('5c' * 6, 16)}"


def test_nothing_of_a_cell_is_on_the_command_line():
    """The channel is started in the template of its network."""
    assert channel_options(serial_link(), Path("/errors"))[:3] == ["--hold", "--errors-from", "/errors"]


def test_pppd_gets_addresses_sizes_and_compression():
    first, second = (
        pppd_options(serial_link(mru="296 B", asyncmap=655360, header_compression=1), index) for index in (0, 1)
    )
    assert (first[-1], second[-1]) == ("10.7.0.1:10.7.0.2", "10.7.0.2:10.7.0.1")
    assert first[first.index("mru") + 1] == first[first.index("mtu") + 1] == "296"
    assert first[first.index("asyncmap") + 1] == "a0000"
    assert "novj" not in first
    assert "novj" in pppd_options(serial_link(), 0)
    assert "noccp" in first


@pytest.mark.parametrize(
    ("parameters", "least_s"),
    [({}, 3), ({"data_delay": "5 s", "ack_delay": "5 s"}, 11), ({"return_rate": "300 bit/s"}, 14)],
)
def test_a_try_of_the_set_up_outlasts_the_round_trip(parameters, least_s):
    options = pppd_options(serial_link(**parameters), 0)
    assert int(options[options.index("lcp-restart") + 1]) >= least_s


def test_the_longest_frame_crosses_the_slowest_line_in_the_time_that_is_waited():
    link = serial_link(return_rate="2400 bit/s")
    data, ack = (crossing_ns(link, direction) for direction in link.directions)
    assert data == 10**9 + 23_300_000 + 30_000 * 10**9 // 115_200
    assert ack == 10**9 + 23_300_000 + 12_500_000_000
