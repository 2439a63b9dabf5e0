"""The reading of pages whose commands are tests: what they show is held against what was printed."""

import pytest

from tests.lab.pages import agree


@pytest.mark.parametrize(
    "shown", ["", "…\n", "one 100 two\n", "one 110 two\nend\n", "│ 3.0e-6 │ x │\n", "one … two\n…\nend\n", "━━━┳━\n"]
)
def test_what_was_printed_may_differ_a_little(shown):
    assert agree(shown, "one 100 two\n│   3e-06 │    x │\n━━━━━━┳━\nbetween\nend\n")


@pytest.mark.parametrize(
    "shown", ["one 200 two\n", "one 100\n", "end\none 100 two\n", "three\n", "one … three\n", "│ 3e-05 │ x │\n"]
)
def test_what_was_not_printed_is_found(shown):
    assert not agree(shown, "one 100 two\n│   3e-06 │    x │\n━━━━━━┳━\nbetween\nend\n")
