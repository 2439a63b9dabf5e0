"""Stack `scps-ri`: settings become words that the adapter of the reference implementation reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scpslab.documents.parts import Part
from scpslab.stacks import STACKS
from scpslab.stacks.scps_ri import ScpsRiHost, options, scps_ri_node

ROOT = Path(__file__).parents[3]
# Every key with a value that is not its default.
EVERYTHING = {
    "fp": "put",
    "program": "scps",
    "transport": "tcp",
    "left": "20 kB",
    "driver": "raw",
    "congestion": "none",
    "loss": "congestion",
    "rate": "2 Mbit/s",
    "timestamps": False,
    "snack": True,
    "compression": True,
    "bets": True,
    "nodelay": False,
    "ack_every": 0,
    "ack_delay": "200 ms",
    "ack_floor": "0 ms",
    "snack_delay": "50 ms",
    "rto_min": "1 s",
    "send_buffer": "400 kB",
    "receive_buffer": "400000 B",
    "mtu": "1452 B",
    "mss": "512 B",
}


def test_a_host_without_settings_has_those_of_the_implementation():
    assert options(ScpsRiHost(stack="scps-ri")) == "--protocol 106 --driver udp"


def test_settings_are_words_in_the_units_of_the_adapter():
    said = options(ScpsRiHost(stack="scps-ri", **EVERYTHING))
    words = dict(zip(said.split()[::2], said.split()[1::2], strict=True))
    assert set(EVERYTHING) == set(ScpsRiHost.model_fields) - set(Part.model_fields) - {"stack"}
    assert (words["--rate"], words["--send-buffer"], words["--rto-min-ms"]) == ("2000000", "400000", "1000")
    assert (words["--timestamps"], words["--snack"], words["--ack-every"], words["--ack-floor-ms"]) == ("false", "true", "0", "0")


def test_the_adapter_and_its_page_know_every_word():
    """Otherwise a cell would be unsupported, or a word known to nobody."""
    words = set(options(ScpsRiHost(stack="scps-ri", **EVERYTHING)).split()[::2])
    adapter = set(re.findall(r'\{ "(--[a-z-]+)"', (ROOT / "images/scps-ri/adapter/settings.c").read_text()))
    adapter |= set(re.findall(r'(?:take|pop)\("(--[a-z-]+)"', (ROOT / "images/scps-ri/scps-ri-file").read_text()))
    page = set(re.findall(r"`(--[a-z-]+)", (ROOT / "images/scps-ri/README.md").read_text()))
    assert words <= adapter
    assert adapter <= page


def test_the_image_is_the_one_that_the_project_builds():
    node = scps_ri_node(ScpsRiHost(stack="scps-ri"))
    assert node.image is not None
    assert re.fullmatch(r"scpslab/scps-ri:\d+\.\d+\.\d+", node.image.image)
    assert not node.image.device


@pytest.mark.parametrize(("containers", "count"), [("docker", 0), ("process", 1)])
def test_it_needs_containers(containers, count):
    assert len(list(STACKS["scps-ri"].problems(ScpsRiHost(stack="scps-ri"), containers))) == count
