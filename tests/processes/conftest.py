"""Fixtures of unit tests that tests of processes use too."""

from tests.unit.conftest import run_fake, synthetic  # noqa: F401
from tests.unit.grading.conftest import assignment, course, hand_in, issued, members, settings  # noqa: F401
from tests.unit.report.conftest import campaign_dir, run_dir  # noqa: F401
from tests.unit.results.test_losses import cell  # noqa: F401
from tests.unit.setup.conftest import recipes  # noqa: F401
