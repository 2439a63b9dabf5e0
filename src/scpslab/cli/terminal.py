"""Makes text of files and guests safe for the terminal: terminals obey control characters, so these are shown instead of sent."""

from __future__ import annotations

import unicodedata

# Controls, invisible format characters (they turn the direction of text) and halves of surrogate pairs.
OBEYED = frozenset({"Cc", "Cf", "Cs"})
KEPT = "\n\t"


def harmless(text: str) -> str:
    """The text, with every character that a terminal would obey escaped as in Python: `x1b` behind a backslash. Line feeds and tabs stay."""
    return "".join(_written(character) if unicodedata.category(character) in OBEYED and character not in KEPT else character for character in text)


def _written(character: str) -> str:
    return ascii(character)[1:-1]
