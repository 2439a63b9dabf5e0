"""Places that have the versions of recipes are asked in order; a first use never fails for a version that is gone."""

import hashlib
import shutil
import subprocess

import pytest

from scpslab.core.errors import CapabilityError
from scpslab.setup import apt
from scpslab.setup.job import Job
from tools.build import source, versions
from tools.build.versions import Package, Versions

DATE = "20261122T210000Z"
NAME = "linux-source-6.12"


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
                self.said.append,
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
