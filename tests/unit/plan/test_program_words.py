"""Commands of workload `program`: the lab's words are filled in, the shell's and braces stay."""

import pytest

from scpslab import scenario
from scpslab.core.errors import ScenarioError
from scpslab.scenario import planning

from scpslab.kinds.workloads.program.plan import filled, unknown_words

TEXT = """kind: scenario
version: 1
topology: point_to_point
workloads:
  - {{kind: program, name: t, from: h1, to: h2, size: 2 kB, server: 'x {{port}}', client: 'y', {more}}}
"""


def planned(tmp_path, more):
    """The workload's plan."""
    file = tmp_path / "mine.yaml"
    file.write_text(TEXT.format(more=more))
    (plan,) = planning.plans(scenario.cells(scenario.load(str(file)))).values()
    return plan.cell.workloads[0]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("send {to}:{port}", "send 10.0.0.2:4433"),
        ("echo ${port} ${#port}", "echo ${port} ${#port}"),
        ("awk '{{print $1}}'", "awk '{print $1}'"),
        ("a {b,c} {} { d; }", "a {b,c} {} { d; }"),
        ("{{{port}}}", "{4433}"),
    ],
)
def test_words_are_filled_in(command, expected):
    assert filled(command, {"to": "10.0.0.2", "port": "4433"}) == expected
    assert unknown_words(command) == []


def test_a_word_that_the_lab_does_not_know_is_refused():
    assert unknown_words("x {prot} {port}") == ["prot"]


def test_the_server_is_at_the_end_that_the_scenario_says(tmp_path):
    there, here = planned(tmp_path, "server_at: to"), planned(tmp_path, "server_at: from")

    assert (there.server_node, there.opener, there.contacted_ip) == ("h2", "h1", there.to_ip)
    assert (here.server_node, here.opener, here.contacted_ip) == ("h1", "h2", here.words["from"])
    assert {name: there.words[name] for name in ("from", "to")} == {name: here.words[name] for name in ("from", "to")}
    assert there.words["server"] == there.words["to"] != here.words["server"] == here.words["from"]


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ("ready_command: 'x {prot}'", "{prot}"),
        ("ready_port: 1, ready_udp: 2", "it beside ready_port"),
        ("keep: [../x]", "the name of a file"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, more, found):
    with pytest.raises(ScenarioError) as error:
        planned(tmp_path, more)
    assert found in str(error.value)
