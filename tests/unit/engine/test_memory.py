"""What guests can have of the memory."""

from scpslab.engine import memory
from scpslab.engine.memory import free_bytes, machine_bytes, of_groups

VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_", "4:memory,hugetlb:/jobs/one\n0::/\n")
VERSION_2 = ("memory.max", "memory.current", "", "0::/jobs/one\n")


def group(folder, version, limit, used, cached=0):
    folder.mkdir(parents=True, exist_ok=True)
    most, now, prefix, _ = version
    (folder / most).write_text(f"{limit}\n")
    (folder / now).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 9\n{prefix}active_file 1\n{prefix}inactive_file {max(cached - 1, 0)}\n")


def seen(tmp_path, version):
    own = tmp_path / "cgroup"
    own.write_text(f"9:name=systemd:/jobs/one\n{version[3]}")
    return list(of_groups(tmp_path / "mount", own))


def test_the_group_and_those_above_it_limit_what_there_is(tmp_path):
    """Of either version; a cache of files makes room for others."""
    for version, top in ((VERSION_1, tmp_path / "mount" / "memory"), (VERSION_2, tmp_path / "mount")):
        group(top / "jobs" / "one", version, 2000, 500, cached=100)
        group(top / "jobs", version, 3000, 2900, cached=1)
        group(top, version, 9000, 10, cached=1)
        # Of others.
        group(top / "jobs" / "two", version, 1, 1)
        group(top.parent, version, 1, 1)
        assert seen(tmp_path, version) == [(2000, 400), (3000, 2899), (9000, 9)]


def test_in_a_container_the_own_group_is_the_top(tmp_path):
    group(tmp_path / "mount", VERSION_2, 2000, 500, cached=100)
    assert seen(tmp_path, VERSION_2) == [(2000, 400)]


def test_groups_without_a_limit_or_that_cannot_be_read_limit_nothing(tmp_path):
    assert list(of_groups(tmp_path / "mount", tmp_path / "none")) == []
    assert seen(tmp_path, VERSION_2) == []
    group(tmp_path / "mount" / "jobs" / "one", VERSION_2, "max", 500)
    assert seen(tmp_path, VERSION_2) == []


def test_a_machine_without_limits_has_what_it_has(tmp_path, monkeypatch):
    for none in ([], [(1 << 63, 5)]):
        monkeypatch.setattr(memory, "of_groups", lambda none=none: iter(none))
        assert free_bytes(tmp_path) > 0
        assert free_bytes(tmp_path) < 1 << 60 > machine_bytes() > 0
    monkeypatch.setattr(memory, "of_groups", lambda: iter([(1 << 20, 1 << 10)]))
    assert machine_bytes() == 1 << 20
    assert free_bytes(tmp_path) == (1 << 20) - (1 << 10)
