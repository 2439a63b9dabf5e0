"""Points of a sweep that are planned alike are named, by validate and by run."""

from pathlib import Path

import pytest

from scpslab import scenario
from scpslab.scenario import planning

SMALL = (Path(__file__).parents[2] / "data" / "small-scenario.yaml").read_text()
NONE = SMALL.replace("model: independent, ber: 1e-6", "model: none").replace("links.hop.*", "links.hop.data")


@pytest.fixture
def warned(tmp_path):
    def of(text: str, *overrides: str) -> list[str]:
        (path := tmp_path / "small.yaml").write_text(text)
        loaded = scenario.load(str(path), overrides)
        planned = {cell.id: planning.plan(cell) for cell in scenario.cells(loaded)}
        return planning.warnings(planned, loaded.places.of(("sweep",)))

    return of


def test_points_that_differ_bring_no_warning(warned):
    assert warned(SMALL) == []


def test_a_bit_error_rate_of_no_error_model_is_named(warned):
    (warning,) = warned(NONE)
    assert (
        'small.yaml:16: sweep: found one plan for "ber=0,r1", "ber=1e-06,r1" and "ber=1e-05,r1"; '
        "expected plans that differ." in warning
    )


def test_the_first_groups_are_named_and_the_others_counted(warned):
    axis = "sweep:\n  size: {set: [workloads.transfer.size], values: [1 kB, 2 kB, 3 kB, 4 kB, 5 kB]}\n"
    found = warned(NONE.replace("sweep:\n", axis))
    assert len(found) == 4
    assert found[-1].endswith("found 2 more groups of cells with one plan each")
