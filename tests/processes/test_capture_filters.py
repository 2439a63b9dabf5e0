"""Filters of captures, asked of this machine's libpcap: a stranger wrote them."""

import ctypes
import time
from contextlib import suppress

import pytest

from scpslab import scenario
from scpslab.cli.plan import checked_plans
from scpslab.core.errors import ScenarioError

from scpslab.kinds.probes.capture.scenario import LIBPCAP, refusal


@pytest.fixture
def libpcap():
    """Tests without it are passed over on machines that lack it."""
    for name in LIBPCAP:
        with suppress(OSError):
            return ctypes.CDLL(name)
    return pytest.skip("libpcap is not on this machine")


@pytest.mark.parametrize("text", ["tcp", "tcp[13] & 2 != 0", "ether host 00:11:22:33:44:55", "ip[2:2] > 576"])
@pytest.mark.usefixtures("libpcap")
def test_a_filter_passes(text):
    assert not refusal(text)


@pytest.mark.parametrize("text", ["tcp !udp", "tcp and", "tcp[13)", "a;b"])
@pytest.mark.usefixtures("libpcap")
def test_what_is_none_is_refused_with_what_libpcap_says(text):
    assert "syntax error" in refusal(text) or "illegal" in refusal(text)


@pytest.mark.parametrize("text", ["host example.org", "tcp dst port iperf", "net nowhere"])
def test_names_are_not_looked_up(text):
    """The lab knows other ones, and a stranger's file makes no machine ask a name server."""
    assert not refusal(text)


@pytest.mark.parametrize("text", ["(" * 200_000, "not " * 200_000, " or ".join(["port 1"] * 100_000)])
def test_a_filter_that_takes_all_there_is_ends(text):
    began = time.monotonic()
    refusal(text)
    assert time.monotonic() - began < 6


@pytest.mark.usefixtures("libpcap")
def test_validate_names_the_probe(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(
        "kind: scenario\nversion: 1\ntitle: Mine\ntopology: point_to_point\n"
        "workloads: [{kind: bulk, name: transfer, from: h1, to: h2, size: 1 kB}]\nprobes:\n"
        "  - {kind: capture, node: h1, filter: tcp}\n  - {kind: capture, node: h2, filter: tcp !udp}\n"
    )
    with pytest.raises(ScenarioError, match=r'mine.yaml:8: probes\[2\].filter: found "tcp !udp" \(syntax error\);'):
        checked_plans(scenario.load(str(file)))
