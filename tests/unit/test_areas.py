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


def test_every_area_has_a_target():
    text = (ROOT / "Makefile").read_text()
    assert "AREAS := $(shell python3 tools/areas.py)" in text
    assert "test-rust:" in text


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([], []),
        (["docs/decisions/0001-x.md", "CHANGELOG.md"], []),
        (["docs/index.md"], ["pages"]),
        (["stack/crates/scps-tp/src/lib.rs"], ["transports", "rust"]),
        (["src/scpslab_course/course/model.py"], ["unit", "links", "teaching"]),
        (["tests/lab/test_scps.py", "tests/lab/test_fork_settings.py"], ["engine", "transports"]),
        (["tests/lab/conftest.py"], list(areas.AREAS)),
        (["src/scpslab/lab/cell.py"], list(areas.AREAS)),
        (["a new place"], list(areas.AREAS)),
    ],
)
def test_a_change_concerns_the_areas_that_it_can_harm(files, expected):
    assert areas.concerned(files) == expected


def test_a_package_concerns_every_area_whose_tests_import_it():
    imported = re.compile(r"^from (scpslab(?:_course)?(?:\.\w+)?)", re.MULTILINE)
    for area in areas.AREAS:
        for file in areas.tests_of(area):
            for module in imported.findall((ROOT / file).read_text() if file.endswith(".py") else ""):
                place = f"src/{module.replace('.', '/')}/x.py"
                assert area in areas.concerned([place]), f"{file} imports {module}"


@pytest.mark.parametrize("base", ["", "no-such-commit"])
def test_without_a_base_every_area_is_concerned(monkeypatch, base):
    unknown = SimpleNamespace(returncode=128, stdout="")
    monkeypatch.setattr(areas, "subprocess", SimpleNamespace(run=lambda *words, **options: unknown))
    assert areas.main(["--changed", base]) == " ".join(areas.AREAS)


def test_an_unknown_area_is_named(capsys):
    with pytest.raises(
        SystemExit,
        match="found '--tests nothing'; expected nothing, --tests AREA or --changed BASE, where AREA is one of unit, ",
    ):
        areas.main(["--tests", "nothing"])


def test_the_smoke_cells_are_few():
    marks = [file.read_text().count("@pytest.mark.smoke") for file in (ROOT / "tests" / "lab").glob("*.py")]
    assert sum(marks) == 5
