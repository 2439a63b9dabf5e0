"""The versions of recipes: files that are read strictly."""

import re

import pytest

from scpslab.core.errors import CapabilityError
from scpslab.setup import images, published
from tests.cases import each, refusal
from tools.build import guest, kernel, pin, versions
from tools.build.versions import Package, Versions

DATE = "20261122T210000Z"


@pytest.mark.parametrize("recipe", ["lab-kernel", "guest"])
def test_the_recipes_have_versions_and_writing_them_again_changes_nothing(recipe):
    file = images.PROJECT / "images" / recipe / versions.FILE
    comment = file.read_text().splitlines()[0].removeprefix("# ")
    assert versions.text(versions.read(file), comment) == file.read_text()


def test_the_kernel_is_one_package_with_its_hash_and_the_guest_has_all_that_it_asks_for():
    (package,) = versions.read(images.PROJECT / "images/lab-kernel" / versions.FILE).packages
    assert package.name == kernel.PACKAGE
    assert package.sha256
    names = {package.name for package in versions.read(images.PROJECT / "images/guest" / versions.FILE).packages}
    assert set(guest.lines(images.PROJECT / "images/guest/packages.txt")) <= names


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


def test_differences_name_what_is_other_what_is_gone_and_what_came_besides():
    wanted = Versions(DATE, (Package("a", "1"), Package("b", "1"), Package("c", "1")))
    assert versions.differences(wanted, {"a": "1", "b": "2", "d": "4"}) == ["b 2 for 1", "no c", "d 4 besides"]
    assert versions.differences(wanted, {"a": "1", "b": "1", "c": "1"}) == []


MADE = published.Entry("kernel", "0" * 16, "a" * 64, "gcc 12")


def test_the_published_file_is_read_back_and_strict(tmp_path):
    file = tmp_path / "published.txt"
    assert published.read(file) == []
    file.write_text(pin.published_text([MADE]))
    assert published.read(file) == [MADE]
    file.write_text("kernel 0 a\n")
    said = refusal(published.read, file, error=CapabilityError)
    assert re.search(r"published.txt:1: found \"kernel 0 a\"; expected PART RECIPE SHA256 TOOLS", said)


def test_the_project_s_published_file_can_be_read():
    assert {entry.part for entry in published.read(images.PROJECT / images.PUBLISHED)} >= {"kernel", "guest", "tools"}


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


def test_the_image_prefers_versions_only_while_it_is_built():
    written, removed = guest._preferences(Versions(DATE, (Package("bash", "5.2.37-2+b10"),)))
    assert "Package: bash\nPin: version 5.2.37-2+b10\nPin-Priority: 1001\n" in written
    assert removed == '--customize-hook=rm "$1/etc/apt/preferences.d/scpslab"'
    assert guest._preferences(None) == []


def test_installed_packages_are_those_of_dpkg_that_are_installed():
    there = "Package: a\nStatus: install ok installed\nDescription: x\n Version: 9\nVersion: 1\n"
    gone = "Package: b\nStatus: deinstall ok config-files\nVersion: 2\n"
    assert guest._installed(f"{there}\n{gone}") == {"a": "1"}
