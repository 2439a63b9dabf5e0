"""The areas of the tests: every test file is in one, and a change is tested where it can do harm."""

import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("areas", ROOT / "tools" / "areas.py")
areas = importlib.util.module_from_spec(spec)
spec.loader.exec_module(areas)


def test_every_file_of_lab_tests_is_in_one_area():
    listed = [file for area in areas.AREAS for file in areas.tests_of(area) if file.startswith("tests/lab")]
    assert sorted(listed) == sorted(str(file.relative_to(ROOT)) for file in (ROOT / "tests" / "lab").glob("test_*.py"))


def lab(*names):
    return {f"tests/lab/test_{name}.py" for name in names}


@pytest.mark.parametrize("files", [[], ["docs/decisions/0001-x.md", "CHANGELOG.md"]])
def test_what_no_test_reads_concerns_none(files):
    assert areas.concerned(files) == {}


@pytest.mark.parametrize(
    "file", ["tests/lab/conftest.py", "src/scpslab/lab/nodes.py", "src/scpslab/gone.py", "a new place", "Makefile"]
)
def test_what_every_lab_has_concerns_every_test_of_labs(file):
    """As does a file that is gone, or that no rule knows."""
    assert lab(*(test[len("tests/lab/test_") : -len(".py")] for test in areas.tests() if "/lab/" in test)) <= set(
        areas.concerned([file])
    )


@pytest.mark.parametrize(
    ("file", "concerned", "others"),
    [
        ("stack/crates/scps-tp/src/lib.rs", {"rust", *lab("scps", "fp")}, lab("docker", "running")),
        ("src/scpslab/analysis/figures/plots/points.py", lab("over_time"), lab("running", "snapshots", "docker")),
        ("src/scpslab/cli/plot.py", lab("over_time", "pages"), lab("running", "mininet", "paths")),
        ("src/scpslab_course/grading/grader.py", lab("assignments", "class"), lab("running", "link_model")),
        ("tests/lab/test_scps.py", lab("scps"), lab("fp")),
        ("topologies/star.py", lab("paths"), set()),
        ("README.md", lab("pages"), lab("running")),
    ],
)
def test_a_change_concerns_the_tests_that_import_it(file, concerned, others):
    found = set(areas.concerned([file]))
    assert concerned <= found
    assert not others & found


def test_the_way_to_a_change_is_said():
    way = areas.concerned(["src/scpslab/analysis/figures/plots/points.py"])["tests/lab/test_over_time.py"]
    assert (way[0], way[-1]) == ("tests/lab/test_over_time.py", "src/scpslab/analysis/figures/plots/points.py")


def test_what_is_loaded_by_name_is_in_a_rule():
    loads = re.compile(r"\bimport_module\(|\bspec_from_file_location\(")
    known = {*areas.LOADED, areas.APP, "src/scpslab/core/kinds.py", "src/scpslab/kinds/__init__.py"}
    assert {
        file for file in areas.files() if file.startswith("src/") and loads.search((ROOT / file).read_text())
    } <= known


@pytest.mark.parametrize("base", ["", "no-such-commit"])
def test_without_a_base_every_test_is_concerned(monkeypatch, base):
    unknown = SimpleNamespace(returncode=128, stdout="")
    monkeypatch.setattr(areas, "subprocess", SimpleNamespace(run=lambda *words, **options: unknown))
    assert set(areas.main(["--changed", base]).split()) == {"rust", *areas.tests()}


def test_the_smoke_cells_are_few():
    marks = [file.read_text().count("@pytest.mark.smoke") for file in (ROOT / "tests" / "lab").glob("*.py")]
    assert sum(marks) == 6
