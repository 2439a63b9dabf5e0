"""Root runs what root has built: nothing of another user's, whatever it says it is."""

import os
from pathlib import Path

import pytest

from scpslab.core.errors import CapabilityError
from scpslab.engine import host
from scpslab.setup import images, trust

ANOTHER_USER = 4242


@pytest.fixture
def product(tmp_path):
    """A product of this user's, with a program in it."""
    folder = tmp_path / "tools" / "hash"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "labtool").write_text("#!/bin/sh\n")
    return folder / "bin"


@pytest.mark.parametrize("name", ["bin/labtool", "bin", ".", "..", "../.."])
def test_what_others_may_write_is_not(product, name):
    """The program, its folder, or a folder above, where it could be put aside for another."""
    path = (product.parent / name).resolve()
    assert trust.stranger(product, os.getuid()) is None
    path.chmod(0o777)
    assert trust.stranger(product, os.getuid()) == path
    # Folders like /tmp may be above.
    path.chmod(0o1777)
    assert trust.stranger(product, os.getuid()) == (None if path.is_dir() else path)


def test_an_ordinary_user_runs_what_there_is_and_root_is_told_whose_it_is_and_what_to_do(product, monkeypatch, told):
    product.parent.chmod(0o777)
    monkeypatch.setattr(os, "geteuid", lambda: ANOTHER_USER)
    assert trust.check(product) == product
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    told("programs that root runs", "writable", trust.check, product, error=CapabilityError)


def planted(cache: Path) -> None:
    """Programs of another user's, where the project looks for its own."""
    folder = images.place(images.TOOLS, cache)
    (folder / "bin").mkdir(parents=True)
    for name in ("labtool", "init", "confine", "stages.bpf.o"):
        (folder / "bin" / name).write_text("#!/bin/sh\nid >/planted\n")
        os.chown(folder / "bin" / name, ANOTHER_USER, ANOTHER_USER)
    os.chown(folder, ANOTHER_USER, ANOTHER_USER)


@pytest.mark.skipif(os.geteuid() != 0, reason="files of another user take root to make")
def test_root_does_not_take_what_another_user_has_planted(tmp_path, monkeypatch, told):
    """Not from the cache it is told to use, nor by sudo from the calling user's, which it does not even look at."""
    planted(tmp_path / "cache")
    monkeypatch.setenv("SCPSLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(host, "PROGRAMS", tmp_path / "programs")
    told("programs that root runs", "planted", host._install, print, with_stack=False, error=CapabilityError)
    assert not (tmp_path / "programs").exists()

    home = tmp_path / "home"
    planted(home / ".cache" / "scpslab")
    monkeypatch.setattr("pwd.getpwuid", lambda _: type("User", (), {"pw_dir": str(home), "pw_name": "somebody"}))
    monkeypatch.setenv("SUDO_UID", str(ANOTHER_USER))
    monkeypatch.delenv("SCPSLAB_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "root's"))
    assert images.find(images.TOOLS, images.cache_dir()) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="files of another user take root to make")
def test_engine_host_does_not_take_a_lab_program_that_another_user_has_planted(tmp_path, monkeypatch, told):
    """Under the very name that it would give it itself."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "labtool").write_text("labtool")
    monkeypatch.setattr(host, "PROGRAMS", tmp_path / "programs")
    monkeypatch.setattr(host, "ensure_tools", lambda _: tools)
    target = host._install(print, with_stack=False)
    os.chown(target / "run_lab.py", ANOTHER_USER, ANOTHER_USER)
    told("programs that root runs", "planted lab program", host._install, print, with_stack=False)
