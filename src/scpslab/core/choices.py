"""Words that are chosen from a list: what to say of one that is not in it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

# A longer list is not read: of more names, only the nearest are shown.
LONGEST_LIST, MOST_NEAR = 24, 6
# Digits behind a point are no number of their own: 1.05 is not 1.5.
LEADING_ZEROS = re.compile(r"(?<![\d.])0+(?=\d)")


def one_of(word: object, choices: Iterable[object]) -> str:
    """`expected one of …`, then what to do: the message suggests the nearest choice, if one is near."""
    names = [str(choice) for choice in choices]
    close = _nearest(str(word), names)
    if len(names) > LONGEST_LIST:
        near = difflib.get_close_matches(str(word), names, n=MOST_NEAR, cutoff=0.5)
        shown = [*([close] if close and close not in near else []), *(near or names)][:MOST_NEAR]
        listed = f"{', '.join(shown)}, … ({len(names)} names)"
    else:
        listed = ", ".join(names)
    expected = f"expected one of {listed}" if names else "expected none here"
    return (
        f"{expected}. Did you mean {close}?"
        if close
        else f"{expected}. Choose one of these."
        if names
        else f"{expected}. Remove it."
    )


def _nearest(word: str, names: list[str]) -> str:
    """The name that differs only in leading zeros of its numbers, else the most similar name; "" when none is
    similar.
    """
    plain = _without_leading_zeros(word)
    same = [name for name in names if _without_leading_zeros(name) == plain]
    return next(iter(same or difflib.get_close_matches(word, names, n=1)), "")


def _without_leading_zeros(text: str) -> str:
    return LEADING_ZEROS.sub("", text)
