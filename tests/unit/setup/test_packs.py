"""Packages and programs of a scenario: what is refused, and what of them goes into plans."""

import os
import tarfile
from io import BytesIO

import pytest

from scpslab.core.errors import CapabilityError, ScenarioError
from scpslab.core.problems import UnfitError
from scpslab.engine import ENGINES
from scpslab.engine.base import check_packs
from scpslab.plan import read, write
from scpslab.plan.packs import Pack, Wanted, wanted
from scpslab.scenario import packs
from scpslab.setup import packs as setup_packs

TEXT = """kind: scenario
version: 1
topology: point_to_point
workloads: [{kind: bulk, name: transfer, from: h1, to: h2, size: 1 MB}]
"""


@pytest.fixture
def planned(planned):
    """Plans a scenario with further keys."""
    return lambda more: planned(TEXT + more)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ngtcp2-client", Wanted("debian", "ngtcp2-client", None)),
        ("caddy=2.6.2-12", Wanted("debian", "caddy", "2.6.2-12")),
        ("pypi:cfdp-py==0.7.0", Wanted("pypi", "cfdp-py", "0.7.0")),
        ("crate:dtn7@0.21.0", Wanted("crate", "dtn7", "0.21.0")),
        ("crate:dtn7", None),
        ("pypi:cfdp-py", None),
        ("--option", None),
        ("a b", None),
        ("", None),
    ],
)
def test_a_package_is_a_name_of_a_registry(text, expected):
    assert wanted(text) == expected


def test_a_plan_without_packages_says_nothing_of_them_and_one_with_them_reads_back(planned):
    assert "pack" not in write(planned(""))["network"]
    plan = planned("packages: [ngtcp2-server, ngtcp2-client, ngtcp2-client]\n")
    assert plan.network.pack == Pack(packages=("ngtcp2-client", "ngtcp2-server"))
    assert read(write(plan)) == plan


def test_a_word_that_is_no_package_is_named_with_its_line(planned):
    with pytest.raises(ScenarioError, match=r'small.yaml:5.*"crate:x".*NAME or NAME=VERSION of Debian'):
        planned('packages: ["crate:x"]\n')


def test_programs_are_what_the_folder_holds_and_no_more(tmp_path):
    folder = tmp_path / "drivers"
    (folder / "bin").mkdir(parents=True)
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "a.pyc").write_text("compiled elsewhere")
    (folder / "bin" / "run").write_text("#!/bin/sh\n")
    before = packs.packed(folder)
    (folder / "bin" / "run").chmod(0o755)
    content = packs.packed(folder)
    os.utime(folder / "bin" / "run", (1, 1))

    assert before != content == packs.packed(folder)
    with tarfile.open(fileobj=BytesIO(content)) as tar:
        assert [(one.name, one.mode) for one in tar] == [("bin/run", 0o755)]


@pytest.mark.parametrize("make", ["link", "pipe", "empty", "missing"])
def test_programs_that_could_be_other_files_of_the_machine_are_refused(tmp_path, planned, make):
    folder = tmp_path / "drivers"
    if make != "missing":
        folder.mkdir()
    if make == "link":
        (folder / "shadow").symlink_to("/etc/shadow")
    if make == "pipe":
        os.mkfifo(folder / "pipe")
    with pytest.raises(UnfitError):
        packs.packed(folder)
    with pytest.raises(ScenarioError, match=r"small\.yaml:5.*programs"):
        planned("programs: drivers\n")


def test_a_folder_outside_of_the_scenario_s_is_refused(planned):
    with pytest.raises(ScenarioError, match="the name of a folder beside the scenario"):
        planned("programs: ../drivers\n")


def test_an_engine_whose_nodes_are_the_machine_refuses_packages_by_name(planned):
    plan = planned("packages: [caddy]\n")
    with pytest.raises(CapabilityError, match="engine host: found packages or programs .caddy."):
        check_packs(ENGINES["host"](), [plan])
    check_packs(ENGINES["virtual"](), [plan])
    check_packs(ENGINES["host"](), [planned("")])


def test_programs_are_kept_by_their_content(tmp_path, monkeypatch):
    monkeypatch.setenv("SCPSLAB_CACHE", str(tmp_path))
    sha256 = setup_packs.keep_programs(b"a tar")
    assert setup_packs.keep_programs(b"a tar") == sha256
    assert [path.name for path in (tmp_path / "packs").iterdir()] == [f"{sha256}.tar"]
    assert (tmp_path / "packs" / f"{sha256}.tar").read_bytes() == b"a tar"


def test_a_pack_that_a_killed_build_left_half_is_not_listed(tmp_path, monkeypatch):
    monkeypatch.setenv("SCPSLAB_CACHE", str(tmp_path))
    for name in (f"{'0' * 16}.x7_y.part", "scpslab-4194305-7-abcdefgh"):
        (tmp_path / "packs" / name).mkdir(parents=True)
        (tmp_path / "packs" / name / setup_packs.VERSIONS).write_text('{"packages": ["caddy"], "versions": {}}')
    assert list(setup_packs.kept()) == []
