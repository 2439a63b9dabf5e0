"""Text of files, guests and strangers, made safe for whatever shows it: terminals obey control characters, XML may not
have them, and marks of direction turn the text around them.
"""

from __future__ import annotations

import unicodedata

# Controls, invisible format characters (they turn the direction of text) and halves of surrogate pairs.
OBEYED = frozenset({"Cc", "Cf", "Cs"})
KEPT = "\n\t"


def harmless(text: str) -> str:
    """The text, with every character that a terminal would obey escaped as in Python: `x1b` behind a backslash.

    Line feeds and tabs stay.
    """
    if text.isprintable():
        return text
    return "".join(
        ascii(character)[1:-1] if unicodedata.category(character) in OBEYED and character not in KEPT else character
        for character in text
    )
