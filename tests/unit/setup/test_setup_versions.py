"""The versions of recipes: files that are read strictly."""

import re

import pytest

from scpslab.core.errors import CapabilityError
from scpslab.setup import published
from tests.cases import each, refusal
from tools.build import pin, versions

DATE = "20261122T210000Z"


@each(
    "text where",
    r"""
 | versions.txt: found no package
DATE | versions.txt: found no package
bash 5.2 | versions.txt:1: found "bash 5.2"; expected date
DATE\nbash 5.2\nbash 5.3 | versions.txt:3: found "bash 5.3"; expected NAME VERSION
DATE\nbash 5.2 abc | versions.txt:2:
DATE\nbash 5.2\nEND\nrm 1 | versions.txt:3: found "END"
DATE\nbash 5;id | versions.txt:2:
DATE\n\0\xff | versions.txt:2:
""",
)
def test_anything_else_is_refused_with_its_line(tmp_path, text, where):
    file = tmp_path / "versions.txt"
    file.write_text(text.replace("DATE", f"date {DATE}").replace(r"\0\xff", "\0\xff") + "\n")
    assert where in refusal(versions.read, file, error=CapabilityError)


MADE = published.Entry("kernel", "0" * 16, "a" * 64, "gcc 12")


def test_the_published_file_is_read_back_and_strict(tmp_path):
    file = tmp_path / "published.txt"
    assert published.read(file) == []
    file.write_text(pin.published_text([MADE]))
    assert published.read(file) == [MADE]
    file.write_text("kernel 0 a\n")
    said = refusal(published.read, file, error=CapabilityError)
    assert re.search(r"published.txt:1: found \"kernel 0 a\"; expected PART RECIPE SHA256 TOOLS", said)


@pytest.mark.parametrize(
    ("sha256", "tools", "recipe", "differs", "same", "word"),
    [
        ("a", "gcc 12", "0", [], True, "as published"),
        ("a", "gcc 13", "0", [], True, "as published"),
        ("b", "gcc 13", "0", [], False, "made with gcc 13, the published one with gcc 12"),
        ("b", "gcc 12", "0", [], False, "from the same versions"),
        ("b", "gcc 12", "1", [], None, "nothing published for this recipe"),
        ("b", "gcc 12", "1", ["linux 2 for 1"], False, "other versions than published: linux 2 for 1;"),
        ("b", "gcc 12", "0", ["a", "b", "c", "d", "e"], False, "a, b, c and 2 more"),
    ],
)
def test_the_verdict_says_why_bytes_differ(sha256, tools, recipe, differs, same, word):
    verdict = published.judge("lab kernel", published.Entry("kernel", recipe * 16, sha256 * 64, tools), differs, [MADE])
    assert verdict.same is same
    assert word in verdict.text
