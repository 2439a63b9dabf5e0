"""Fixtures of unit tests that tests of processes use too."""

from tests.unit.grading.conftest import assignment, course, hand_in, issued, members, settings  # noqa: F401
from tests.unit.setup.conftest import recipes  # noqa: F401
