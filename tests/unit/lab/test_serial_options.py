"""A serial link's plan in the words of `scps channel` and pppd."""

import json
from pathlib import Path

import pytest

from scpslab.lab.serial import channel_errors, channel_options, crossing_ns, pppd_options
from scpslab.plan import schema
from scpslab.plan.cell import CellPlan, Limits
from tests import golden
from tests.networks import network_of

ERRORS = {"model": "none", "action": "drop", "settings": {}, "seed": "5c" * 32, "vector_errors": 65536}
ERRORS |= {"drop_packets": [], "drop_min_bytes": 0, "outages": []}


def serial_link(**parameters):
    return network_of("sgls", **parameters).serial_links[0]


def cell(data_errors=None):
    errors = {"forward": ERRORS | (data_errors or {}), "return": ERRORS}
    impairments = [{"link": "serial", "direction": name, "errors": one} for name, one in errors.items()]
    limits = Limits(virtual_s=60, wall_s=60)
    plain = CellPlan(id="r1", scenario="test", axes={}, repeat=1, kernel_seed="", limits=limits)
    return schema.read(CellPlan, schema.write(plain) | {"impairments": impairments})


@golden.each("errors of a serial line")
def test_every_error_model_has_its_words(case):
    """And the seed is the plan's."""
    case.hold(channel_errors(serial_link(), cell(json.loads(case)), Path("/vectors")))


def test_nothing_of_a_cell_is_on_the_command_line():
    """The channel is started in the template of its network."""
    assert channel_options(serial_link(), Path("/errors"))[:3] == ["--hold", "--errors-from", "/errors"]


@pytest.mark.parametrize("parameters", [{}, {"mru": "296 B", "asyncmap": 655360, "header_compression": 1}], ids=str)
def test_pppd_gets_addresses_sizes_and_compression(parameters):
    found = "\n".join(" ".join(pppd_options(serial_link(**parameters), end)) for end in (0, 1))
    golden.Case("options of pppd", str(parameters)).hold(found)


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
