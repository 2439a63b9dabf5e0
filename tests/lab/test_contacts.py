"""Two relays whose contacts alternate: next hops follow, and what is under way arrives.

A cell is completed only if the auditor explains every packet.
"""

from pathlib import Path

import numpy as np
import pytest

from scpslab import scenario
from scpslab.measure.packets import read
from scpslab.runs import CellFiles
from scpslab.scenario import planning
from scpslab.scenario.planning.flows import paths_text
from tests.cases import refusal

TOPOLOGY = Path(__file__).parents[1] / "data" / "diamond.py"
STEPS = "[{{at: 0 s, state: {}}}, {{at: 2 s, state: {}}}]"
PROFILE = "{{profile: {{when_down: {}, repeat: 4 s, steps: {}}}}}"


def relays(folder, *, when_down="hold", more=""):
    """A scenario in a folder, with its topology: `east` is up for 2 s, then `west`."""
    (folder / "diamond.py").write_text(TOPOLOGY.read_text())
    lines = []
    for relay, states in (("east", ("up", "down")), ("west", ("down", "up"))):
        profile = PROFILE.format(when_down, STEPS.format(*states))
        lines += [f"  {relay}{number}: {{up: {profile}, down: {profile}}}" for number in (1, 2)]
    (folder / "relays.yaml").write_text(
        "kind: scenario\nversion: 1\ntopology: ./diamond.py\nrouting: contacts\nlimits: {lab_time: 60 s}\n"
        f"{more}links:\n" + "\n".join(lines) + "\nworkloads:\n  - {kind: bulk, name: transfer, from: h1, to: h2, size: "
        "4 MB}\n  - {kind: ping, name: echo, from: h1, to: h2, count: 60, interval: 100 ms}\n"
    )
    return folder / "relays.yaml"


def planned(path):
    return planning.plans(scenario.cells(scenario.load(str(path))))


def test_a_plan_has_the_changes_of_routes_and_draws_them(tmp_path):
    plans = planned(relays(tmp_path))
    steps = [(one.t_ns, one.node, one.route.to, one.route.via, one.holds) for one in plans["r1"].cell.events[:4]]

    # The routes of the topology lead over `east`, and hold again while that is up.
    assert steps == [
        (2 * 10**9, "g1", "10.2.0.1/32", "10.9.21.2", True),
        (2 * 10**9, "g2", "10.1.0.1/32", "10.9.22.2", True),
        (4 * 10**9, "g1", "10.2.0.1/32", "10.9.11.2", False),
        (4 * 10**9, "g2", "10.1.0.1/32", "10.9.12.2", False),
    ]
    text = paths_text(plans)
    assert "    from 2 s on: h1 ─lan1→ g1 ─west1→ west ─west2→ g2 ─lan2→ h2; back the same way\n" in text
    assert "    from 4 s on: h1 ─lan1→ g1 ─east1→ east ─east2→ g2 ─lan2→ h2; back the same way\n" in text


@pytest.mark.parametrize("stack", ["kernel", "scps"])
def test_packets_take_the_relay_that_is_up_and_those_under_way_arrive(run, tmp_path, stack):
    """Where packets wait while a link is down, only a full queue loses any."""
    hosts = f"hosts: {{h1: {{stack: {stack}}}, h2: {{stack: {stack}}}}}\n"
    cell = run(relays(tmp_path, more=hosts)).cell.completed

    assert cell.line("echo", event="summary")["received"] == 60
    for line in cell.lines("accounting"):
        assert line["outage_packets"] == line["corrupt_packets"] == 0
    offered = {(one.link, one.direction): one.offered_ns for one in read(CellFiles(cell.folder).packets)}
    for link, first_ns in (("east1", 0), ("west1", 2 * 10**9)):
        since_ns = offered[link, "up"] % (4 * 10**9) - first_ns
        assert len(since_ns) > 500
        # The routes change one after the other, some hundred nanoseconds after the contact.
        assert np.all((since_ns >= 0) & (since_ns < 2 * 10**9 + 10_000))
    # Programs of SCPS have addresses of their own, with routes beside those of their hosts.
    own = [line for line in cell.records("events") if line["to"] in ("10.2.0.1/32", "10.1.0.1/32")]
    changes = [(line["node"], line["via"]) for line in own][:4]
    assert changes == [("g1", "10.9.21.2"), ("g2", "10.9.22.2"), ("g1", ""), ("g2", "")]


def test_no_rate_is_told_of_a_way_that_changes(run, tmp_path):
    row = run(relays(tmp_path, when_down="lose")).row
    assert (row["utilization"], row["goodput_bps"]) == ("", row["goodput_bps"]) != ("", "")


def test_contacts_without_a_profile_are_refused(tmp_path):
    (tmp_path / "own.yaml").write_text(
        "kind: scenario\nversion: 1\ntopology: point_to_point\nrouting: contacts\n"
        "workloads: [{kind: ping, name: echo, from: h1, to: h2}]\n"
    )
    said = refusal(lambda: planned(tmp_path / "own.yaml"))
    assert "routing: found contacts without a profile; expected profiles that take links up and down" in said
