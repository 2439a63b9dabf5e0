"""What is around a guest: the words that start it, and what may be left in its folder."""

import os

from scpslab.engine.confinement import launcher, sweep, take
from tests import golden


def test_the_lab_kernel_sees_its_folders_and_writes_its_results(tmp_path):
    """Folders as they really are, for names in the working folder may be links."""
    (tmp_path / "real").mkdir()
    (tmp_path / "cell" / "out").mkdir(parents=True)
    for name in ("boot", "lab"):
        (tmp_path / name).symlink_to(tmp_path / "real")
    words = launcher(tmp_path / "tools", tmp_path / "linux", tmp_path, tmp_path / "memory")
    golden.Case("words around a guest", "launcher").hold("\n".join(words), tmp_path)


def test_what_becomes_a_link_while_it_is_copied_is_not_followed(tmp_path, monkeypatch):
    """A machine that still runs changes its files between a look and a copy."""
    left, outside, target = tmp_path / "left", tmp_path / "outside", tmp_path / "out"
    (left / "out" / "records").mkdir(parents=True)
    outside.mkdir()
    (outside / "file").write_text("mine")
    for name in ("kept", "file", "pipe"):
        (left / "out" / name).write_text("of the guest")
    scan = os.scandir

    def list_and_change(folder):
        entries = list(scan(folder))
        monkeypatch.setattr(os, "scandir", scan)
        for path in (left / "out" / "file", left / "out" / "pipe"):
            path.unlink()
        (left / "out" / "records").rmdir()
        (left / "out" / "file").symlink_to(outside / "file")
        (left / "out" / "records").symlink_to(outside)
        os.mkfifo(left / "out" / "pipe")
        return entries

    monkeypatch.setattr(os, "scandir", list_and_change)
    take(left, {"out": target, "missing": tmp_path / "missing"})

    assert {path.name: path.read_text() for path in target.iterdir()} == {"kept": "of the guest"}
    assert not (tmp_path / "missing").exists()


def test_a_guest_leaves_files_and_folders_only(tmp_path):
    """Links and pipes go, without what they lead to; rights to run a file as its owner go too."""
    out, outside = tmp_path / "out", tmp_path / "outside"
    (out / "records").mkdir(parents=True)
    outside.mkdir()
    (outside / "file").write_text("mine")
    (out / "records" / "kept.jsonl").write_text("{}")
    (out / "program").write_text("#!/bin/sh\n")
    (out / "program").chmod(0o6755)
    (out / "plan.json").symlink_to(outside / "file")
    (out / "logs").symlink_to(outside)
    os.mkfifo(out / "records" / "pipe")

    assert sorted(sweep(out)) == ["logs", "plan.json", "records/pipe"]
    assert sorted(path.name for path in out.rglob("*")) == ["kept.jsonl", "program", "records"]
    assert (out / "program").stat().st_mode & 0o7777 == 0o755
    assert (outside / "file").read_text() == "mine"
    assert sweep(out) == []
