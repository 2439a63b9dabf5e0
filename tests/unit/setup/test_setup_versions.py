"""The versions of recipes: files that are read strictly, places that are asked in order, and a first use that never
fails for a version that is gone.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess

import pytest

from scpslab.core.errors import CapabilityError
from scpslab.setup import images, published
from tools.build import apt, guest, kernel, source, versions
from tools.build.job import Job
from tools.build.versions import Package, Versions

DATE = "20261122T210000Z"
NAME = "linux-source-6.12"


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


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "versions.txt: found no package"),
        (f"date {DATE}\n", "versions.txt: found no package"),
        ("bash 5.2\n", 'versions.txt:1: found "bash 5.2"; expected date'),
        (f"date {DATE}\nbash 5.2\nbash 5.3\n", 'versions.txt:3: found "bash 5.3"; expected NAME VERSION'),
        (f"date {DATE}\nbash 5.2 abc\n", "versions.txt:2: "),
        (f"date {DATE}\nbash 5.2\nEND\nrm 1\n", 'versions.txt:3: found "END"'),
        (f"date {DATE}\nbash 5;id\n", "versions.txt:2: "),
        (f"date {DATE}\n\x00\xff\n", "versions.txt:2: "),
    ],
)
def test_anything_else_is_refused_with_its_line(tmp_path, text, where):
    file = tmp_path / "versions.txt"
    file.write_text(text)
    with pytest.raises(CapabilityError) as refused:
        versions.read(file)
    assert where in str(refused.value)


def test_differences_name_what_is_other_what_is_gone_and_what_came_besides():
    wanted = Versions(DATE, (Package("a", "1"), Package("b", "1"), Package("c", "1")))
    assert versions.differences(wanted, {"a": "1", "b": "2", "d": "4"}) == ["b 2 for 1", "no c", "d 4 besides"]
    assert versions.differences(wanted, {"a": "1", "b": "1", "c": "1"}) == []


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """Folders that are mirrors: `shop.put(place, version)` puts a package there."""
    for tool in ("dpkg-deb", "apt-get"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} here")

    class Shop:
        def __init__(self) -> None:
            self.said: list[str] = []

        def put(self, place: str, version: str) -> str:
            """Returns the file's hash."""
            root = tmp_path / "roots" / place / version
            (root / "DEBIAN").mkdir(parents=True)
            control = (
                f"Package: {NAME}\nVersion: {version}\nArchitecture: all\nMaintainer: nobody\nDescription: "
                f"made in {place}\n"
            )
            (root / "DEBIAN" / "control").write_text(control)
            folder = (
                tmp_path / place / "dists" / (f"{apt.SUITE}-security" if place.endswith("-security") else apt.SUITE)
            )
            file = tmp_path / place / f"{NAME}_{version}_all.deb"
            (folder / "main/binary-amd64").mkdir(parents=True, exist_ok=True)
            subprocess.run(["dpkg-deb", "--build", "--root-owner-group", root, file], check=True, capture_output=True)
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            with (folder / "main/binary-amd64/Packages").open("a") as index:
                index.write(f"{control}Filename: {file.name}\nSize: {file.stat().st_size}\nSHA256: {digest}\n\n")
            (folder / "Release").write_text(
                f"Suite: {folder.name}\nCodename: {folder.name}\nArchitectures: amd64\nComponents: main\n"
            )
            return digest

        def fetch(self, version: str, sha256: str) -> tuple[str, list[str]]:
            """The version that comes, and what differs."""
            work = tmp_path / "work"
            work.mkdir()
            job = Job(
                "kernel",
                tmp_path,
                work / "product",
                tmp_path / "log",
                lambda text, is_under_way=False: self.said.append(text),
            )
            file = source.fetch(Versions(DATE, (Package(NAME, version, sha256),)), work, job)
            return versions.of_file(file), job.differs

    monkeypatch.setenv("SCPSLAB_MIRROR", f"file:{tmp_path}/debian")
    monkeypatch.setenv("SCPSLAB_SNAPSHOT", f"file:{tmp_path}/snapshot")
    monkeypatch.delenv(source.VARIABLE, raising=False)
    # Unsigned: the folders have no key.
    monkeypatch.setattr(
        apt,
        "_line",
        lambda address, suite, options="": f"deb [{options}trusted=yes allow-insecure=yes] {address} {suite} main",
    )
    return Shop()


def test_the_version_is_taken_from_the_first_place_that_has_it(shop):
    wanted = shop.put("debian", "6.12.1-1")
    shop.put("debian", "6.12.9-1")
    assert shop.fetch("6.12.1-1", wanted) == ("6.12.1-1", [])


@pytest.mark.parametrize("place", ["debian-security", f"snapshot/{DATE}"])
def test_a_version_that_the_mirror_lost_comes_from_elsewhere(shop, place):
    shop.put("debian", "6.12.9-1")
    wanted = shop.put(place, "6.12.1-1")
    assert shop.fetch("6.12.1-1", wanted) == ("6.12.1-1", [])


def test_a_version_that_nobody_has_is_replaced_by_the_newest_which_is_said(shop):
    shop.put("debian", "6.12.8-1")
    shop.put("debian-security", "6.12.9-1")
    assert shop.fetch("6.12.1-1", "0" * 64) == ("6.12.9-1", ["linux-source-6.12 6.12.9-1 for 6.12.1-1"])


def test_no_snapshot_service_is_asked_that_nobody_named(shop, monkeypatch):
    shop.put("debian", "6.12.9-1")
    wanted = shop.put(f"snapshot/{DATE}", "6.12.1-1")
    assert len(apt.places(DATE, security=True)) == 3
    monkeypatch.delenv("SCPSLAB_SNAPSHOT")
    assert [place.title.rpartition("/")[2] for place in apt.places(DATE, security=True)] == [
        "debian",
        "debian-security",
    ]
    assert shop.fetch("6.12.1-1", wanted) == ("6.12.9-1", ["linux-source-6.12 6.12.9-1 for 6.12.1-1"])


def test_a_package_with_other_bytes_is_not_that_version(shop):
    shop.put("debian", "6.12.1-1")
    wanted = shop.put(f"snapshot/{DATE}", "6.12.1-1")
    assert shop.fetch("6.12.1-1", wanted) == ("6.12.1-1", [])
    assert any("expected " + wanted in line for line in shop.said)


def test_without_any_place_the_mirror_s_failure_is_told(shop):
    with pytest.raises(CapabilityError, match="apt-get: found exit code 100"):
        shop.fetch("6.12.1-1", "0" * 64)


def test_a_file_of_the_user_comes_first_and_a_wrong_one_is_passed_over(shop, tmp_path, monkeypatch):
    wanted = shop.put("mine", "6.12.1-1")
    monkeypatch.setenv(source.VARIABLE, str(tmp_path / "mine"))
    assert shop.fetch("6.12.1-1", wanted) == ("6.12.1-1", [])
    shutil.rmtree(tmp_path / "work")
    other = shop.put("debian", "6.12.2-1")
    assert shop.fetch("6.12.2-1", other) == ("6.12.2-1", [])
    assert any("Looking elsewhere" in line for line in shop.said)


MADE = published.Entry("kernel", "0" * 16, "a" * 64, "gcc 12")


def test_the_published_file_is_read_back_and_strict(tmp_path):
    file = tmp_path / "published.txt"
    assert published.read(file) == []
    file.write_text(published.text([MADE]))
    assert published.read(file) == [MADE]
    file.write_text("kernel 0 a\n")
    with pytest.raises(
        CapabilityError, match=r"published.txt:1: found \"kernel 0 a\"; expected PART RECIPE SHA256 TOOLS"
    ):
        published.read(file)


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
    status = (
        "Package: a\nStatus: install ok installed\nDescription: x\n Version: 9\nVersion: 1\n\nPackage: b\nStatus: "
        "deinstall ok config-files\nVersion: 2\n"
    )
    assert guest._installed(status) == {"a": "1"}
