"""Old names of scenarios go on working, and say the new one."""

import pytest

from scpslab import scenario
from scpslab.analysis.claims import Evidence
from scpslab.analysis.claims.model import Series
from scpslab.analysis.table import BEFORE_AXES
from scpslab.plan import write
from scpslab.scenario import planning
from scpslab.scenario.campaign import load_campaign
from scpslab.scenario.load import RENAMED, current_name, evidence_variants
from tests.cases import each

pytestmark = pytest.mark.slow

OLD = [f"{name}{variant}" for name in RENAMED for variant in ("", ":demo", ":test")] + ["fy97/fig04-kernel:detail"]


@pytest.mark.parametrize("old", OLD)
def test_an_old_name_is_the_variant_that_it_became(old):
    loaded = scenario.load(old)
    assert loaded.name == current_name(old) != old
    assert loaded.base_name == old.partition("-kernel")[0]
    plans = [write(planning.plan(cell)) for cell in scenario.cells(loaded)]
    hosts = [node for plan in plans for node in plan["network"]["nodes"] if node["kind"] == "host"]
    assert {host["stack"] for host in hosts} == {"kernel"}


@each(
    "old new",
    """
fy97/fig04-kernel | fy97/fig04:kernel
fy97/fig04-kernel:demo | fy97/fig04:kernel-demo
scenarios/fy97/fig14-kernel.yaml:test | fy97/fig14:kernel-test
fy97/fig04:demo | fy97/fig04:demo
campaigns/papers:quick | campaigns/papers:quick
""",
)
def test_the_new_name_of_a_name(old, new):
    assert current_name(old) == new


def test_campaigns_may_have_old_names(tmp_path):
    path = tmp_path / "mine.yaml"
    first, second = "fy97/fig04-kernel, variant: [none-such, demo]", '"fy97/fig0?-kernel", variant: [test]'
    entries = (first, second, "fy97/fig14-kernel")
    lines = "".join(f"  - {{scenario: {entry}}}\n" for entry in entries)
    path.write_text(f"kind: campaign\nversion: 1\ntitle: Mine\nruns:\n{lines}")

    found = load_campaign(str(path))

    tests = [f"fy97/fig{figure}:kernel-test" for figure in ("04", "06", "08")]
    assert [member.name for member in found.members] == ["fy97/fig04:kernel-demo", *tests, "fy97/fig14:kernel"]
    assert found.left_out == ()


def test_runs_of_old_names_are_evidence_as_they_were(tmp_path):
    """results.csv of a run has the name of its time."""
    for variant in ("", ":demo", ":test"):
        run = tmp_path / f"run{variant.replace(':', '-')}"
        run.mkdir()
        fields = dict.fromkeys((*BEFORE_AXES, "repeat", "seed", "status", "reason", "transfer_s"), "") | {
            "scenario": f"fy97/fig04-kernel{variant}"
        }
        fields |= {"repeat": "1", "seed": variant, "status": "completed", "transfer_s": "20"}
        (run / "results.csv").write_text(",".join(fields) + "\n" + ",".join(fields.values()) + "\n")
    rows = Evidence.of_runs(sorted(tmp_path.iterdir())).select(Series(scenarios=("fy97/fig04",)), {})
    assert {row.run.name for row in rows} == {"run", "run-demo"}


def test_claims_use_the_variants_that_say_so():
    assert evidence_variants("fy97/fig04") == {"", "demo", "era", "detail", "kernel", "kernel-demo", "kernel-detail"}
    assert evidence_variants("somebodys-own") == {""}
