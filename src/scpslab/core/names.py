"""Names of cells, nodes, links, workloads, probes and interfaces: one rule for all of them, and the one place where
names become file names.

Only the standard library is used here: the lab program imports this module inside the guest too.
"""

import re

LONGEST = 100
LONGEST_CELL = 200
# Kernel interfaces: IFNAMSIZ without its end.
LONGEST_INTERFACE = 15
# The longest name in file systems, with room for the endings of unfinished files.
LONGEST_FILE_NAME = 240
RULE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+=,-]*", re.ASCII)
# A folder NAME.part is the unfinished state of NAME.
UNFINISHED = ".part"
EXPECTED = 'letters, digits and . _ + = , - without ".." and ".part", the first one a letter, digit or _'
_OTHER = re.compile(r"[^A-Za-z0-9._+=,-]+")
# A reference to an image as Docker reads it: registry, path, and a tag or digest.
IMAGE = r"^[a-z0-9][a-z0-9._:/-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?(@sha256:[0-9a-f]{64})?$"

# What formulas begin with, in the widths and heights that Unicode has for it.
FORMULA_SIGNS = tuple("=+-@⁺⁼₊₌⩴⩵⩶﬩﹢﹣﹦﹫＋－＝＠")


class BadName(ValueError):
    """An invalid name; the message says what was found and expected."""


def is_formula(text: str) -> bool:
    """Whether a spreadsheet that opens a CSV would take a text for a formula; a number is none."""
    if not text.startswith(FORMULA_SIGNS):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def is_name(text: object, most: int = LONGEST) -> bool:
    """Whether a value is a name of at most `most` characters."""
    return (
        isinstance(text, str)
        and len(text) <= most
        and RULE.fullmatch(text) is not None
        and ".." not in text
        and not text.endswith(UNFINISHED)
    )


def file_name(*names: str, suffix: str = "") -> str:
    """The name of the file or folder for these names, joined by "-"; never a path to another place.

    Raises:
        BadName: one of them is not a valid name, or together they are too long.
    """
    for name in names:
        if not is_name(name, LONGEST_CELL):
            raise BadName(f"found the name {shown(name)}; expected {EXPECTED}")
    joined = "-".join(names) + suffix
    if not names or len(joined) > LONGEST_FILE_NAME:
        raise BadName(
            f"found the file name {shown(joined)} of {len(joined)} characters; expected 1 to {LONGEST_FILE_NAME}"
        )
    return joined


def file_label(text: str) -> str:
    """A person's title or path as a name: every run of other characters becomes "-". Add a hash where the name must be
    unique.
    """
    plain = re.sub(r"\.{2,}", ".", _OTHER.sub("-", text)).lstrip(".-=,+")[:LONGEST]
    return re.sub(r"(\.part|[.-])+$", "", plain) or "unnamed"


def node_and_link(text: str) -> tuple[str, str]:
    """The node and the link of `NODE.LINK`, which is how people write a node's address on a link; a node alone has the
    link "".
    """
    node, _, link = text.partition(".")
    return node, link


def shown(text: object) -> str:
    """A name in a message: in quotes, on one line, not too long."""
    words = ascii(text)[1:-1] if isinstance(text, str) else ascii(text)
    return f'"{words[:60]}{"…" if len(words) > 60 else ""}"'
