"""`scpslab new` writes files that validate, and none over another."""

import itertools
import re

import pytest

from scpslab import scenario
from scpslab.plan.topology import catalogue
from scpslab.plan.workloads import WORKLOADS
from scpslab.scenario import fresh, planning, workloads

EVERYTHING = list(itertools.product(fresh.networks(), fresh.workload_kinds()))


@pytest.mark.parametrize(("topology", "workload"), EVERYTHING)
@pytest.mark.slow
def test_every_network_with_every_traffic_makes_cells_with_the_defaults(tmp_path, scpslab, topology, workload):
    path = tmp_path / "mine.yaml"
    code, said, explained = scpslab("new", str(path), "--topology", topology, "--workload", workload, "--repeats", "2")

    assert (code, said) == (0, f"{path}\n")
    assert "8 cells of at least" in explained
    for command in ("validate", "run", "results", "compare", "plot"):
        assert f"scpslab {command} " in explained
    code, _, said = scpslab("validate", str(path))
    # Nor has it words of an older version, of which the command would warn.
    assert (code, "migrate" in said) == (0, False)
    loaded = scenario.load(str(path))
    assert loaded.model.workloads[0].kind == workload
    assert [list(cell.axes.values()) for cell in scenario.cells(loaded)[::2]] == [
        ["cubic", 0],
        ["cubic", 1e-6],
        ["bbr", 0],
        ["bbr", 1e-6],
    ]
    plans = [planning.plan(cell) for cell in scenario.cells(loaded)]
    assert planning.warnings({plan.cell.id: plan for plan in plans}, "") == []


@pytest.mark.parametrize("topology", fresh.networks())
def test_the_parameters_of_the_comment_are_the_defaults(tmp_path, scpslab, topology):
    """With the comment's signs removed, the plans are the same."""
    path, other = tmp_path / "mine.yaml", tmp_path / "other.yaml"
    scpslab("new", str(path), "--topology", topology)
    other.write_text(re.sub(r"^# ?(parameters:|  )", r"\1", path.read_text(), flags=re.MULTILINE))

    assert "\nparameters:\n" in other.read_text()
    one, two = (scenario.load(str(file)) for file in (path, other))
    assert one.network == two.network


@pytest.mark.parametrize("stack", list(fresh.stack_cases()))
def test_every_stack_that_is_offered_carries_a_transfer(tmp_path, scpslab, stack):
    path = tmp_path / "mine.yaml"
    assert scpslab("new", str(path), "--stacks", stack, "--ber", "0", "--repeats", "1", "--seed", "7")[0] == 0
    (cell,) = scenario.cells(scenario.load(str(path)))
    assert (cell.axes["stack"], cell.scenario.seed) == (stack, 7)
    planning.plan(cell)


def test_a_file_is_never_overwritten(tmp_path, scpslab):
    path = tmp_path / "mine.yaml"
    path.write_text("mine")
    code, said, wrong = scpslab("new", str(path))
    assert (code, said, path.read_text()) == (2, "", "mine")
    assert f"{path}: found a file; expected none, because nothing is overwritten." in wrong
    dangling = tmp_path / "link.yaml"
    dangling.symlink_to(tmp_path / "nowhere.yaml")
    assert scpslab("new", str(dangling))[0] == 2
    assert not (tmp_path / "nowhere.yaml").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["mine"], 'found the name "mine"; expected letters'),
        (["mine.txt"], 'found the name "mine.txt"'),
        (["nowhere/mine.yaml"], "found no folder nowhere"),
        (["mine.yaml", "--topology", "fy98"], '--topology: found "fy98"; expected one of'),
        (["mine.yaml", "--workload", "bulc"], "Did you mean bulk?"),
        (["mine.yaml", "--stacks", "cubik,bbr"], 'found "cubik"'),
        (["mine.yaml", "--ber", "0,2"], '--ber: found "0,2"; expected numbers from 0 to 1'),
        (["mine.yaml", "--ber", "many"], '--ber: found "many"; expected numbers, such as 0,1e-6'),
        (["mine.yaml", "--size", "4"], '--size: found "4" (no unit)'),
        (["mine.yaml", "--workload", "ping", "--size", "4 MB"], "the workload ping, which has no size"),
        (
            ["mine.yaml", "--topology", "sgls", "--stacks", "scps-fy97-rate", "--workload", "bulk", "--size", "0 B"],
            "found",
        ),
    ],
)
def test_what_does_not_fit_is_said_and_nothing_is_written(tmp_path, monkeypatch, scpslab, words, expected):
    monkeypatch.chdir(tmp_path)
    code, said, wrong = scpslab("new", *words)
    assert (code, said) == (2, "")
    assert expected in wrong
    assert list(tmp_path.iterdir()) == []


def test_only_networks_of_scps_np_cannot_be_chosen():
    assert set(catalogue.names()) - set(fresh.networks()) == {"fy97_np"}


def test_every_kind_of_workload_can_be_chosen_but_loads_images_and_files():
    left_out = set(workloads.KINDS) - set(fresh.workload_kinds())
    assert left_out == {
        name
        for name, kind in workloads.KINDS.items()
        if kind.is_load or kind.needs_file or WORKLOADS[name].knows_images
    }
    assert left_out == {"background", "endpoint", "policy", "transport"}
