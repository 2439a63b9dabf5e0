"""What tables of cases share: a line each, texts and trees with something else in them, and what a refusal says."""

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import strategies as st

from scpslab.core.errors import ScenarioError
from tests import golden


def rows(text: str) -> list[list[str]]:
    """The lines of a table as their cells, with ` | ` between them; `\\n` and `\\t` in them are as in Python."""
    lines = text.strip("\n").replace("\\t", "\t").splitlines()
    return [[cell.strip(" ").replace("\\n", "\n") for cell in f"{line} ".split(" | ")] for line in lines]


def each(names: str, text: str) -> pytest.MarkDecorator:
    """Runs a test with every line of a table."""
    return pytest.mark.parametrize(names.split(), rows(text), ids=lambda cell: cell[:40])


def document(name: str) -> str:
    """A right document of tests/data/documents.txt."""
    return f"{golden.families(golden.FILE.with_name('documents.txt'))['documents'][name]}\n"


def whole(text: str) -> str:
    """A scenario's text with its head, on the network of two hosts and a hop if it names none."""
    return "kind: scenario\nversion: 1\n" + ("" if "topology:" in text else "topology: point_to_point\n") + text


def changed(text: str, *changes: tuple[str, str]) -> str:
    """The text with other words in the place of some that are in it."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def steps(path: str) -> list[str | int]:
    """The keys and numbers of `workloads[0].size`."""
    return [int(step) if step.isdigit() else step for step in re.findall(r"[^.\[\]]+", path)]


def with_value(tree: Any, path: str, value: object) -> Any:
    """A copy of a tree with another value at a place."""
    found = inner = copy.deepcopy(tree)
    *way, last = steps(path)
    for step in way:
        inner = inner[step]
    inner[last] = value
    return found


def places(tree: object, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every key path of a tree."""
    yield at
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield from places(value, (*at, key))


def values(*plain: object) -> st.SearchStrategy[Any]:
    """Any value of JSON, and these words and numbers among them."""
    numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    return st.recursive(
        st.none() | st.booleans() | numbers | st.text(max_size=12) | st.sampled_from(plain),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
        max_leaves=6,
    )


def refusal(call: Callable[..., object], *given: Any, error: type[Exception] = ScenarioError, **named: Any) -> str:
    """What the error says with which a call ends."""
    with pytest.raises(error) as caught:
        call(*given, **named)
    return str(caught.value)
