"""What is around a guest: the words that start it, and what may be left in its folder. What guests can have of the
memory. What is refused before a guest starts: more memory than the machine has, and a session in virtual time.
Which program keeps virtual time from passing: its command line, on the stack as Linux begins it.
"""

import os

import pytest

from scpslab.core.errors import CapabilityError, UsageError
from scpslab.engine import memory
from scpslab.engine.confinement import launcher, sweep, take
from scpslab.engine.memory import check_guests, free_bytes, machine_bytes, of_groups
from scpslab.engine.uml import command_line, no_network
from scpslab.engine.virtual import VirtualEngine
from tests import golden
from tests.cases import refusal


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


def group(folder, limit, used, cached=0):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 9\nactive_file 1\ninactive_file {max(cached - 1, 0)}\n")


def seen(tmp_path):
    own = tmp_path / "cgroup"
    own.write_text("9:name=systemd:/jobs/one\n0::/jobs/one\n")
    return list(of_groups(tmp_path / "mount", own))


def test_the_group_and_those_above_it_limit_what_there_is(tmp_path):
    """A cache of files makes room for others."""
    top = tmp_path / "mount"
    group(top / "jobs" / "one", 2000, 500, cached=100)
    group(top / "jobs", 3000, 2900, cached=1)
    group(top, 9000, 10, cached=1)
    # Of others.
    group(top / "jobs" / "two", 1, 1)
    group(tmp_path, 1, 1)
    assert seen(tmp_path) == [(2000, 400), (3000, 2899), (9000, 9)]


def test_in_a_container_the_own_group_is_the_top(tmp_path):
    group(tmp_path / "mount", 2000, 500, cached=100)
    assert seen(tmp_path) == [(2000, 400)]


def test_groups_without_a_limit_or_that_cannot_be_read_limit_nothing(tmp_path):
    assert list(of_groups(tmp_path / "mount", tmp_path / "none")) == []
    assert seen(tmp_path) == []
    group(tmp_path / "mount" / "jobs" / "one", "max", 500)
    assert seen(tmp_path) == []


def test_a_machine_without_limits_has_what_it_has(tmp_path, monkeypatch):
    for none in ([], [(1 << 63, 5)]):
        monkeypatch.setattr(memory, "of_groups", lambda none=none: iter(none))
        assert free_bytes(tmp_path) > 0
        assert free_bytes(tmp_path) < 1 << 60 > machine_bytes() > 0
    monkeypatch.setattr(memory, "of_groups", lambda: iter([(1 << 20, 1 << 10)]))
    assert machine_bytes() == 1 << 20
    assert free_bytes(tmp_path) == (1 << 20) - (1 << 10)


MACHINE_MIB = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20


def test_a_guest_of_the_machine_s_whole_memory_is_the_largest():
    check_guests([no_network({"wall_s": 1, "memory_mib": MACHINE_MIB}), no_network({"wall_s": 1, "memory_mib": 64})])
    check_guests([])
    said = refusal(check_guests, [no_network({"wall_s": 1, "memory_mib": MACHINE_MIB + 1})], error=CapabilityError)
    least = f"found a guest of {MACHINE_MIB + 1} MiB; expected at most the {MACHINE_MIB} MiB of this machine"
    assert f"limits.memory: {least}" in said


def test_nobody_can_be_in_a_lab_in_virtual_time(tmp_path):
    plan = no_network({"wall_s": 1, "memory_mib": 64})
    said = refusal(VirtualEngine().interact, plan, tmp_path, lambda _out: None, error=UsageError)
    assert "engine virtual: found an engine without a prompt; expected an engine on the wall" in said


MACHINE = os.uname().machine.encode()
SETTINGS = (b"HOME=/root", b"LANG=C.UTF-8")


def stack(*words: bytes) -> bytes:
    """The stack's upper end: random bytes, the machine's name, the command line, the settings, the file."""
    strings = b"\0".join([b"\x17\xbf\xe5" + MACHINE, *words, *SETTINGS, b"/usr/bin/x"])
    return strings.rjust(4096 - 9, b"\0") + b"\0" * 9


@pytest.mark.parametrize(
    ("pages", "words"),
    [
        ([stack(b"sh", b"-c", b"while :; do :; done")], ["sh", "-c", "while :; do :; done"]),
        ([b"\x7fELF" + b"\0" * 4092, stack(b"iperf3", b"-n", b"200K")], ["iperf3", "-n", "200K"]),
        ([stack()], ["/usr/bin/x"]),
        ([b"\0" * 4096, b"\xff" * 4096], []),
        ([], []),
    ],
)
def test_the_command_line_is_found_on_the_stack(pages, words):
    assert command_line(iter(pages)) == words
