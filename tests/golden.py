"""The words of messages in one file that is read as text, tests/data/messages.txt; tests say the rest.

A family of cases begins with `# its name`; a case is a line, and what is printed for it stands below, indented. Tests
take cases from there (`each`) or name them (`Case`, and the fixture `told`). For a new case of the first write the line
alone: `SCPSLAB_GOLDEN=renew pytest …` (in one process) writes down what is printed now, to be read before it is
committed.
"""

import os
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Self

import pytest

FILE = Path(__file__).parent / "data" / "messages.txt"
PROJECT = Path(__file__).parents[1]
# What differs from machine to machine, and from version to version.
DIFFERS = {
    r"(?<=[a-z]-)[0-9a-f]{8}\b|\b(?!\d+e\d+\b)(?=\d*[a-f])(?=[a-f]*\d)(?:[0-9a-f]{8}|[0-9a-f]{12,})\b": "DIGEST",
    re.escape(sys.executable): "PYTHON",
}
DIFFERS |= {r"\bscpslab-\d[\w.]*-": "scpslab-VERSION-"}
# How many there are is said of what is there: a further scenario changes no message.
DIFFERS |= {r"\(\d+ names\)": "(N names)"}


class Case(str):
    """A case of a family."""

    __slots__ = ("family",)

    def __new__(cls, family: str, text: str) -> Self:
        case = super().__new__(cls, text)
        case.family = family
        return case

    def hold(self, said: object, folder: Path = Path("/nowhere")) -> str:
        """Holds what is printed against the file; paths are those below the folder and the project. Returns it."""
        text = str(said).replace(f"{folder}/", "").replace(str(folder), "FOLDER")
        for pattern, word in DIFFERS.items():
            text = re.sub(pattern, word, text)
        text = text.replace(f"{PROJECT}/", "PROJECT/")
        text = "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
        known = families()
        if os.environ.get("SCPSLAB_GOLDEN") == "renew":
            known[self.family][self] = text
            FILE.write_text("\n".join(f"# {name}\n\n{_written(cases)}" for name, cases in known.items()))
        assert text == known[self.family].get(self), f"# {self.family}: {self}: tests/golden.py says how to renew"
        return text


def families(file: Path = FILE) -> dict[str, dict[str, str]]:
    """What stands in such a file, by family and case."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for part in re.split(r"^# ", file.read_text(), flags=re.MULTILINE)[1:]:
        name, _, rest = part.partition("\n")
        for case, said in re.findall(r"^(?! {4})(.+)\n((?: {4}.*\n|\n(?= {4}))*)", rest, flags=re.MULTILINE):
            assert case not in found[name], f"# {name}: {case}: stands there twice"
            found[name][case] = "\n".join(line[4:] for line in said.splitlines())
    return found


def _written(cases: dict[str, str]) -> str:
    return "".join(
        f"{case}\n" + "".join(f"    {line}".rstrip() + "\n" for line in said.splitlines())
        for case, said in cases.items()
    )


def each(family: str, names: str = "case") -> pytest.MarkDecorator:
    """Runs a test with every case of a family, and with its parts between ` | `, where `\\n` is a line break."""
    shown = [(case, *parts)[: names.count(" ") + 1] for case, parts in rows(family, names.count(" "))]
    return pytest.mark.parametrize(names.split(), shown, ids=lambda cell: cell[:60] if isinstance(cell, Case) else "")


def rows(family: str, count: int) -> list[tuple[Case, list[str]]]:
    """The cases of a family with so many parts."""
    texts = {Case(family, text): f"{text} ".split(" | ", count - 1) for text in families()[family]}
    return [(case, [part.strip(" ").replace("\\n", "\n") for part in parts]) for case, parts in texts.items()]
