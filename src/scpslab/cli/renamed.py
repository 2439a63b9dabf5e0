"""Options of earlier versions and what they are called today. They work until version 1."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

from scpslab.cli.terminal import harmless

# By command. An option that is now a word without one has no name.
RENAMED = {
    "assignment": {"--into": "--out"},
    "clean": {"--most": "--max-size"},
    "doctor": {"--json": "--format=json"},
    "grade": {"--cells": "--sample"},
    "list": {"--what": ""},
    "mn": {"--limit": "--max-wall"},
    "verify": {"--wall": "--max-wall"},
}


def todays_words(words: Sequence[str]) -> list[str]:
    """The words of a command line as they are typed today; prints them if they are others."""
    renamed = RENAMED.get(words[0], {}) if words else {}
    today: list[str] = []
    for word in words:
        option, equals, value = word.partition("=")
        if option not in renamed:
            today.append(word)
        elif renamed[option]:
            today.append(f"{renamed[option]}{equals}{value}")
        elif equals:
            today.append(value)
    if today != list(words):
        print(harmless(f"today this is: {shlex.join(['scpslab', *today])}"), file=sys.stderr)
    return today
