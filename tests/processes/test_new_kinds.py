"""Who adds the files and lines that CONTRIBUTING names has added a kind everywhere; tests/lab runs cells with it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from scpslab import scenario
from scpslab.core.errors import ScenarioError
from tests.cases import document
from tests.lab.copied_tree import OF_SCENARIOS, ROOT, SORTS, CopiedTree, NewKind
from tests.runs import write_manifest
from tools.reference.scenarios import schema

# The project's tools, of the copy's package.
PRINT_BOTH = f"""import json, sys
sys.path.append({str(ROOT)!r})
from tools.reference.scenarios import reference, schema
print(json.dumps(schema())); print(reference())"""


@pytest.fixture(scope="module", params=OF_SCENARIOS)
def kind(request) -> NewKind:
    """Every made-up kind in turn that scenarios name."""
    return NewKind(request.param)


@pytest.fixture(scope="module")
def tree(kind, tmp_path_factory) -> CopiedTree:
    """The project with the kind."""
    return CopiedTree(tmp_path_factory.mktemp("tree"), kind)


def test_there_is_a_made_up_kind_of_every_sort():
    assert SORTS == ["engine", "error-model", "preset", "probe", "queue-discipline", "service", "stack", "workload"]


def values(part: object) -> Iterator[str]:
    """The words that a schema takes somewhere."""
    for key, value in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
        if key in ("const", "enum"):
            yield from value if isinstance(value, list) else [str(value)]
        else:
            yield from values(value)


def test_the_project_itself_does_not_know_the_kind(kind, tmp_path):
    # As a value: a key of another part may be called so.
    assert kind.expected["word"] not in set(values(schema()))
    with pytest.raises(ScenarioError, match=re.escape(kind.expected["word"])):
        scenario.load(str(kind.alone(tmp_path)))


def test_schema_and_reference_know_the_kind(kind, tree):
    made = tree.python("-c", PRINT_BOTH)
    assert (made.returncode, made.stderr) == (0, "")
    described, page = made.stdout.split("\n", 1)

    assert f'"{kind.expected["word"]}"' in described
    assert kind.expected["word"] in page


def test_scenarios_with_the_kind_are_read_planned_and_written(kind, tree, tmp_path):
    path = str(kind.alone(tmp_path))
    validated, resolved = tree.scpslab("validate", path), tree.scpslab("validate", path, "--resolved")

    # The made-up discipline is at a host, where validate doubts any.
    assert validated.returncode == 0
    assert all(line.startswith("warning: ") for line in validated.stderr.splitlines())
    assert "1 cell, all planned" in validated.stdout
    assert kind.expected["word"] in resolved.stdout


def test_a_misspelled_kind_or_key_is_refused_with_the_right_word(kind, tree, tmp_path):
    wrong = kind.expected["misspelled"]
    said = tree.scpslab("validate", str(kind.alone(tmp_path)), "--set", wrong["set"])

    assert said.returncode != 0
    assert wrong["says"] in said.stderr


def test_a_made_up_engine_runs_a_cell_to_its_results_and_every_command_knows_it(tmp_path):
    """Its file and its line are all that is added; it needs no lab, and nothing that is built."""
    kind, cache = NewKind("engine"), tmp_path / "cache"
    tree = CopiedTree(tmp_path / "tree", kind)
    words = ["run", str(kind.scenario), "--out", str(tmp_path / "runs")]
    done = tree.scpslab(*words, *kind.expected["options"], cache=cache)
    again = tree.scpslab(*words, *kind.expected["options"], cache=cache)
    wrong = tree.scpslab(*words, *kind.expected["misspelled"]["words"], cache=cache)

    assert done.returncode == 0, done.stderr
    run = Path(done.stdout.splitlines()[-1])
    assert kind.untrue(run) == []
    # It says that it gives the same bytes every time, so its results are kept and verified like others.
    assert "1 of them from the cache" in again.stderr
    assert "all 1 cells" in tree.scpslab("verify", str(run), cache=cache).stdout
    assert kind.expected["misspelled"]["says"] in wrong.stderr
    assert tree.scpslab("doctor", *kind.expected["options"], cache=cache).stdout.split() == [
        *("check", "found"),
        *("formula", "ok", "arithmetic"),
    ]
    assert "formula (no lab, pings alone)" in " ".join(tree.scpslab("run", "--help").stdout.split())


@pytest.mark.parametrize("sort", SORTS)
def test_contributing_names_every_place_that_the_kind_is_in(sort):
    kind = NewKind(sort)
    table = (ROOT / "CONTRIBUTING.md").read_text()
    rows = [line for line in table.splitlines() if line.startswith(f"| {kind.sort.replace('-', ' ')} |")]
    assert len(rows) == 1
    _, files, registry = rows[0].strip("| ").split(" | ")

    for source in kind.sources:
        is_folder = source.parts[0] == "kinds"
        assert f"{source.parents[1 if is_folder else 0]}/" in files, source
        assert source.name == "__init__.py" or not is_folder or f"`{source.name}`" in files, source
    assert [entry["file"] for entry in kind.lines if entry["file"] not in registry] == []


RECIPE = document("recipe of a made-up plot")


class NewPlot(NewKind):
    """The made-up kind of picture of tests/data/new_plot."""

    @property
    def folder(self) -> Path:
        """Where it is described."""
        return ROOT / "tests" / "data" / "new_plot"


def test_a_kind_of_picture_from_a_file_of_its_own_is_drawn(synthetic, tmp_path):
    run_dir = synthetic.write_run(tmp_path / "fig04-golden-0002")
    (tmp_path / "mine.yaml").write_text(RECIPE)
    (tmp_path / "wrong.yaml").write_text(RECIPE.replace("metric:", "metrik:"))
    write_manifest(run_dir, "mine")
    kind = NewPlot("kind of picture")
    tree = CopiedTree(tmp_path / "tree", kind)

    drawn = tree.scpslab("plot", str(run_dir), "--figure", str(tmp_path / "mine.yaml"), "--format", "svg")
    refused = tree.scpslab("plot", str(run_dir), "--figure", str(tmp_path / "wrong.yaml"))

    assert (drawn.returncode, drawn.stderr) == (0, "")
    assert "12 cells" in (run_dir / "figures" / "mine.svg").read_text()
    assert 'wrong.yaml:5: metrik: found the unknown key "metrik"' in refused.stderr


def test_contributing_names_the_places_of_a_kind_of_picture():
    (row,) = (line for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines() if "| kind of picture |" in line)
    kind = NewPlot("kind of picture")
    assert [str(source.parent) for source in kind.sources] == ["analysis/figures/plots"]
    assert {entry["file"] for entry in kind.lines} == {"analysis/figures/plots/__init__.py"}
    assert "`src/scpslab/analysis/figures/plots/<name>.py`" in row
    assert "`PLOTS` in `analysis/figures/plots/__init__.py`" in row
