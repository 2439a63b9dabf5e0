"""Workloads and probes that a case, a variant or --set leaves out; the others keep their lines in messages."""

import pytest
import yaml

from tests.cases import document

SCENARIO = document("scenario with three workloads")
VARIANT = 'variants: {alone: {set: {workloads.victim: off, workloads.echo: "off"}}}'
TRANSFER = "  transfer: far ─hop→ r1 ─trunk→ sink; back the same way"
VICTIM = "  victim: near ─lan→ r1 ─trunk→ sink; back the same way"
ECHO = "  echo: far ─hop→ r1 ─trunk→ sink; back the same way"
CASES = "sweep={others: {cases: {there: {workloads.victim.size: 200 kB}, alone: {workloads.victim: off}}}}"


@pytest.fixture
def validate(scpslab, tmp_path):
    def run(*settings: str, variant: str = "", words: tuple[str, ...] = ()) -> tuple[int, list[str], str]:
        (path := tmp_path / "others.yaml").write_text(SCENARIO + (VARIANT if variant else ""))
        code, said, wrong = scpslab(
            "validate", f"{path}{variant}", *words, *(word for setting in settings for word in ("--set", setting))
        )
        return code, said.splitlines(), wrong

    return run


def test_an_override_and_a_variant_leave_workloads_out(validate):
    assert validate("workloads.victim=off")[1][1:3] == [TRANSFER, ECHO]
    assert validate(variant=":alone")[1][1:] == [TRANSFER]


def test_a_case_leaves_a_workload_out_of_its_cells(validate):
    code, said, wrong = validate(CASES)
    assert (code, wrong) == (0, "")
    assert said[1:4] == [TRANSFER, f"{VICTIM} (1 of 2 cells)", ECHO]


@pytest.mark.parametrize("order", [("others", "size"), ("size", "others")])
def test_an_axis_may_set_what_another_leaves_out(validate, order):
    """In whichever order the axes stand; where there is nothing to set, the points are alike, which is said."""
    axes = {
        "others": "{cases: {there: {workloads.echo.count: 4}, alone: {workloads.victim: off}}}",
        "size": "{set: [workloads.victim.size], values: [1 kB, 2 kB]}",
    }
    code, said, wrong = validate(f"sweep={{{', '.join(f'{axis}: {axes[axis]}' for axis in order)}}}")
    assert code == 0
    assert f"{VICTIM} (2 of 4 cells)" in said
    assert wrong.count('found one plan for "') == 1


def test_the_others_keep_their_lines(validate):
    """What is wrong with echo is in line 8; nothing is said of line 7, where victim was."""
    _, _, wrong = validate("workloads.victim=off", "limits.lab_time=1 s")
    assert ":6: workloads[1]" in wrong
    assert ":8: workloads[2]" in wrong
    assert ":7: " not in wrong


def test_probes_can_be_left_out_and_the_resolved_scenario_has_what_is_left(validate):
    _, said, _ = validate("probes.depth=off", "workloads.victim=off", words=("--resolved",))
    resolved = yaml.safe_load("\n".join(said))
    assert resolved["probes"] == []
    assert [workload["name"] for workload in resolved["workloads"]] == ["transfer", "echo"]
