"""What tables of cases share: a line each, texts with something else in them, and what a refusal says."""

from collections.abc import Callable
from typing import Any

import pytest

from scpslab.core.errors import ScenarioError


def rows(text: str) -> list[list[str]]:
    """The lines of a table as their cells, with ` | ` between them; `\\n` and `\\t` in them are as in Python."""
    lines = text.strip("\n").replace("\\t", "\t").splitlines()
    return [[cell.strip(" ").replace("\\n", "\n") for cell in f"{line} ".split(" | ")] for line in lines]


def each(names: str, text: str) -> pytest.MarkDecorator:
    """Runs a test with every line of a table."""
    return pytest.mark.parametrize(names.split(), rows(text), ids=lambda cell: cell[:40])


def changed(text: str, *changes: tuple[str, str]) -> str:
    """The text with other words in the place of some that are in it."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def refusal(call: Callable[..., object], *given: Any, error: type[Exception] = ScenarioError, **named: Any) -> str:
    """What the error says with which a call ends."""
    with pytest.raises(error) as caught:
        call(*given, **named)
    return str(caught.value)
