"""What a person did at the prompt is a scenario, and means the same there."""

import pytest

from scpslab import scenario
from scpslab.cli.session import transcript
from scpslab.core import units
from scpslab.core.errors import ScenarioError
from scpslab.plan import write
from scpslab.scenario import planning

STEPS = [
    {"at": "220 ms", "do": "run", "node": "h1", "command": "iperf3 -c 10.0.0.2 -t 12", "required": False},
    {"at": "2.385 s", "do": "link", "link": "hop", "direction": "forward", "rate": "1 Mbit/s"},
    {"at": "2.412 s", "do": "link", "link": "hop", "ber": 1e-05},
    {"at": "4.459 s", "do": "link", "link": "hop", "state": "down"},
]


def plan_of(tmp_path, steps):
    path = tmp_path / "transcript.yaml"
    path.write_text(transcript(steps, "point_to_point", {"links": {"hop": {"forward": {"rate": "4 Mbit/s"}}}}, {}))
    loaded = scenario.load(str(path))
    (cell,) = scenario.cells(loaded)
    return write(planning.plan(cell))


def test_a_transcript_is_a_scenario_with_the_same_steps(tmp_path):
    """Commands, and changes of one direction or both, each with errors of its own."""
    plan = plan_of(tmp_path, STEPS)
    run, rate, ber, down = plan["cell"]["events"]

    assert (run["node"], run["command"], run["required"]) == ("h1", STEPS[0]["command"], False)
    assert (rate["directions"], rate["change"], rate["value"]) == (["forward"], "rate", 10**6)
    assert (ber["directions"], ber["value"], len(set(ber["seeds"]))) == (["forward", "return"], 1e-5, 2)
    assert (down["change"], down["value"], down["t_ns"]) == ("state", "down", units.parse("duration", "4.459 s"))
    assert plan["network"]["links"][0]["directions"][0]["rate_bps"] == 4 * 10**6


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"at": "1 s", "do": "link", "link": "hops", "state": "up"}, 'found "hops"'),
        ({"at": "1 s", "do": "link", "link": "hop"}, "found no change"),
        ({"at": "1 s", "do": "link", "link": "hop", "ber": 0.1, "state": "up"}, "found ber and state"),
        ({"at": "1 s", "do": "link", "link": "hop", "rate": "9 bit/s"}, "multiple of 8"),
        ({"at": "1 s", "do": "run", "node": "h9", "command": "true"}, 'found "h9"'),
    ],
)
def test_steps_that_cannot_be_are_refused(step, words, tmp_path):
    """Before anything runs, with the place and what to do."""
    with pytest.raises(ScenarioError, match=words):
        plan_of(tmp_path, [step])
