"""Words that are chosen from a list: what to say of one that is not in it."""

import difflib
import re
from collections.abc import Iterable

# A longer list is not read: of more names, only the nearest are shown.
LONGEST_LIST, MOST_NEAR = 24, 6
# Digits behind a point are no number of their own: 1.05 is not 1.5.
# Words of 0.3.0, each with today's.
FORMER = (
    "ack:return congestion:congestion_control congestion:background data:forward loss:loss_response "
    "p_bad_good:bad_to_good_per_bit p_good_bad:good_to_bad_per_bit packet-loss:packet patience:timeout script:events "
    "virtual:lab_time wall:wall_time"
)
LEADING_ZEROS = re.compile(r"(?<![\d.])0+(?=\d)")


def one_of(word: object, choices: Iterable[object]) -> str:
    """`expected one of …`, then what to do, as text."""
    return "expected {}. {}".format(*choice(word, choices))


def choice(word: object, choices: Iterable[object]) -> tuple[str, str]:
    """What is expected, and what to do, which names the nearest choice, if one is near, or today's word for one of
    0.3.0.
    """
    names = [str(choice) for choice in choices]
    former = (pair.partition(":") for pair in FORMER.split())
    if now := next((now for was, _, now in former if was == word and now in names), None):
        return renamed(now)
    close = _nearest(str(word), names)
    if len(names) > LONGEST_LIST:
        near = difflib.get_close_matches(str(word), names, n=MOST_NEAR, cutoff=0.5)
        shown = [*([close] if close and close not in near else []), *(near or names)][:MOST_NEAR]
        listed = f"{', '.join(shown)}, … ({len(names)} names)"
    else:
        listed = ", ".join(names)
    advice = f"Did you mean {close}?" if close else "Choose one of these." if names else "Remove it."
    return f"one of {listed}" if names else "none here", advice


def renamed(now: str) -> tuple[str, str]:
    """The same of a word of 0.3.0 that is called `now` today."""
    return f"{now}, its name since 0.4.0, which can translate the file", "Correct the word."


def _nearest(word: str, names: list[str]) -> str:
    """The name that differs only in leading zeros of its numbers, else the most similar name; "" when none is
    similar.
    """
    plain = _without_leading_zeros(word)
    same = [name for name in names if _without_leading_zeros(name) == plain]
    return next(iter(same or difflib.get_close_matches(word, names, n=1)), "")


def _without_leading_zeros(text: str) -> str:
    return LEADING_ZEROS.sub("", text)
