"""Points of a sweep that are planned alike are named, by validate and by run."""

import pytest

from scpslab import scenario
from scpslab.scenario import planning
from tests.cases import changed

NO_MODEL = (("model: independent, ber: 1e-6", "model: none"), ("links.hop.*", "links.hop.forward"))
SIZES = "sweep:\n  size: {set: [workloads.transfer.size], values: [1 kB, 2 kB, 3 kB, 4 kB, 5 kB]}\n"


@pytest.mark.parametrize(
    ("changes", "count", "last"),
    [
        ((), 0, ""),
        (
            NO_MODEL,
            1,
            'small.yaml:16: sweep: found one plan for "ber=0,r1", "ber=1e-06,r1", "ber=1e-05,r1"; expected plans th',
        ),
        # The first groups are named and the others counted.
        ((*NO_MODEL, ("sweep:\n", SIZES)), 4, "found 2 more groups of cells with one plan each"),
    ],
)
def test_a_bit_error_rate_of_no_error_model_is_named(load, small, changes, count, last):
    loaded = load(changed(small, *changes))
    planned = {cell.id: planning.plan(cell) for cell in scenario.cells(loaded)}
    warnings = planning.warnings(planned, loaded.places.of(("sweep",)))
    assert len(warnings) == count
    assert last in "".join(warnings[-1:])
