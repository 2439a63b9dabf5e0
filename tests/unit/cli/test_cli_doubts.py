"""What `scpslab validate` refuses, as nothing can come of it, and what it warns of; a lab takes both in silence."""

import pytest

from tests import golden
from tests.cases import document

SCENARIO = document("scenario with a trunk")
DATA = "links.trunk.forward"
QUEUE, ERRORS = f"{DATA}.queue", f"{DATA}.errors"
MARKING = f"{QUEUE}={{discipline: codel, ecn: true, codel_target: 20 ms}}"
FOREIGN_KEY = f"{QUEUE}.red_min=9 kB"
OTHER_MODEL = f"{ERRORS}={{ber: 1.0e-5, mean_gap_in_burst: 5}}"
ENDS = "name: transfer, from: far, to: sink"
OTHER = "name: other, from: far, to: sink"
# With one of these beside it, a point of the sweep or another host uses the word.
MOVES = f"later: {{workloads.transfer.start: 2 s}}, first: {{{DATA}.delay_table: [{{at: 0 s, delay: 9 ms}}]}}"
USED = [
    (FOREIGN_KEY, f"sweep={{queue: {{set: [{QUEUE}.discipline], values: [drop-tail, red]}}}}"),
    (OTHER_MODEL, f"sweep={{errors: {{set: [{ERRORS}.model], values: [independent, clustered]}}}}"),
    (f"{DATA}.delay=5 ms", f"sweep={{moves: {{cases: {{{MOVES}}}}}}}"),
    ("links.hop.forward.queue.discipline=red", "hosts={far: {stack: scps}, sink: {stack: scps}}"),
    (f"workloads=[{{kind: ping, count: 3600, {ENDS}}}]", "limits.lab_time=3601 s"),
    (f"workloads=[{{kind: ping, count: 3601, required: false, {ENDS}}}, {{kind: ping, {OTHER}, count: 1}}]",),
    ("links.*.forward.rate=8 Mbit/s", "hosts={far: {stack: scps, rate: none}, sink: {stack: scps}}"),
    ("links.*.forward.rate=8 Mbit/s", "hosts={far: {stack: scps, congestion_control: none}, sink: {stack: scps}}"),
    ("workloads.transfer.size=200 MB", "limits.memory=1 GiB"),
    ("workloads.transfer.size=200 MB", "packets=off"),
    (MARKING, "hosts={far: {ecn: true}, sink: {ecn: true}}"),
    (MARKING, "hosts={far: {congestion_control: dctcp}, sink: {congestion_control: dctcp}}"),
]


@pytest.fixture
def validate(scpslab, tmp_path):
    def run(*settings: str) -> tuple[int, str, str]:
        (path := tmp_path / "trunk.yaml").write_text(SCENARIO)
        return scpslab("validate", str(path), *(word for setting in settings for word in ("--set", setting)))

    return run


@golden.each("validate refuses")
def test_what_nothing_can_come_of_is_refused(validate, case, tmp_path):
    code, _, err = validate(case)
    assert code == 2
    case.hold(err, tmp_path)


@golden.each("validate warns")
def test_what_can_hardly_be_meant_is_warned_of(validate, case, tmp_path):
    code, _, err = validate(case)
    assert (code, err.count("\n")) == (0, 1)
    assert case.hold(err, tmp_path).startswith("warning: ")


@pytest.mark.parametrize("settings", USED)
def test_what_is_used_somewhere_brings_no_warning(validate, settings):
    assert validate(*settings)[::2] == (0, "")


def test_scps_that_its_own_rate_keeps_below_the_hop_s_is_warned_of(validate):
    code, _, err = validate("links.*.forward.rate=8 Mbit/s", "hosts={far: {stack: scps}, sink: {stack: scps}}")
    found = "hosts.far.rate: found SCPS-TP at no more than 2 Mbit/s, its program's own rate, over a hop of 8 Mbit/s"
    assert (code, err.count("\n"), found in err) == (0, 1, True), err
