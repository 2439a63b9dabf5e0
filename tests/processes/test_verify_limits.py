"""What any archive may cost before its first cell runs: 512 MiB, and a minute of a processor for 10 MB."""

import random
import resource
import tarfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from scpslab.core.errors import ResultError
from scpslab.core.limited import WorkLimits, limited
from scpslab.running import RunOptions, runner
from scpslab.running import verify as module
from scpslab.running.verify import verify
from scpslab.runs.archive import write_archive
from tests import archives
from tools.no_lab import NoLab

MIB = 1 << 20
PLAN, RESOLVED, MANIFEST = "/plan.json", "/scenario.resolved.yaml", "/manifest.json"


@pytest.fixture
def members(run_fake, tmp_path):
    """A run, packed: its members by name."""
    return archives.members(write_archive([run_fake("links/transfer").folder], tmp_path / "a.tar.gz"))


def header(kind, size):
    """A tar header that says that a long name follows, with it; packed to no more than a hundredth."""

    def content():
        entry = tarfile.TarInfo("././@LongLink")
        entry.type, entry.size = kind, size
        noise = random.Random(1).randbytes(MIB)
        yield entry.tobuf(tarfile.GNU_FORMAT)
        yield from (noise if at % 100 == 0 else bytes(MIB) for at in range(size >> 20))

    return content


def ended(end):
    """The name of the one member that ends so."""
    return lambda members: next(name for name in members if name.endswith(end))


def replaced(end, *parts):
    """The members with another file: a text, the next one so many times, and a last one."""
    start, again, times, last = (*parts, b"", 0, b"")[:4]
    return lambda members: (
        members | {(ended(end)(members) if end != "archive.json" else end): start + again * times + last}
    )


def with_topologies(members):
    """The members with 14 files of 60 MB that would be kept in memory."""
    run = ended(MANIFEST)(members).split("/")[0]
    noise = random.Random(1).randbytes(MIB)
    return members | {f"{run}/t{number}.py": noise + bytes(59 * MIB) for number in range(14)}


def cost_of_reading(path):
    """What `verify` says of an archive; the most memory and all the processor time of this process and its children.

    For a process of its own, which has no lab either.
    """
    NoLab.memory = path.parent
    runner.ENGINES["virtual"], runner.places = NoLab, tuple
    try:
        (found,) = verify(path, RunOptions(jobs=1))
        said = " ".join(found.contradictions)
    except ResultError as error:
        said = str(error)
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    resident = max(usage.ru_maxrss for usage in usages) << 10
    return said, resident, sum(usage.ru_utime + usage.ru_stime for usage in usages)


@pytest.mark.parametrize(
    ("change", "before", "says"),
    [
        (replaced(RESOLVED, b"x: [", b"[],", 2_000_000, b"]\n"), tuple, "found more than 200000 values"),
        (replaced(RESOLVED, b"", b"[", 100_000, b""), tuple, "found deeper nesting"),
        (
            replaced(MANIFEST, b'{"a":[', b"[],", 20_000_000, b"[]]}"),
            tuple,
            "manifest.json: found more than 1000000 values",
        ),
        (replaced(PLAN, b"[", b"{},", 20_000_000, b"{}]"), tuple, "plan.json: found more than 1000000 values"),
        (
            replaced("archive.json", b"[", b"[],", 20_000_000, b"[]]"),
            tuple,
            "archive.json: found more than 1000000 values",
        ),
        (dict, header(tarfile.GNUTYPE_LONGNAME, 300 * MIB), "found a header of 314572800 bytes"),
        (dict, header(tarfile.XHDTYPE, 300 * MIB), "found a header of 314572800 bytes"),
        (dict, header(tarfile.XGLTYPE, 300 * MIB), "which is neither a file nor a folder"),
        (dict, header(tarfile.GNUTYPE_SPARSE, MIB), "which is neither a file nor a folder"),
        (with_topologies, tuple, "found a need for more than 448 MiB of memory"),
    ],
    ids=["yaml", "deep yaml", "manifest", "plan", "contents", "long name", "pax", "global pax", "sparse", "kept files"],
)
def test_an_archive_of_any_content_takes_little_memory_and_time(members, tmp_path, change, before, says):
    path = tmp_path / "b.tar.gz"

    def make():
        changed = change(members)
        if changed["archive.json"].startswith(b"{"):
            changed = archives.listed(changed, [name.partition("/")[2] for name in changed if name.endswith(".py")])
        archives.pack(changed, path, before())

    limited(make, WorkLimits(memory_bytes=4 << 30))
    # In a fresh process: this one has after thousands of tests more memory than the limit, and a fork begins with all of it.
    with ProcessPoolExecutor(1, mp_context=get_context("forkserver")) as fresh:
        said, resident, cpu_s = fresh.submit(cost_of_reading, path).result()
    assert says in said
    assert resident <= 512 * MIB
    assert cpu_s <= 60


def test_an_archive_whose_reading_takes_too_long_is_refused(members, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CPU_S", 3)
    changed = replaced(RESOLVED, b"x: [", b"[],", 190_000, b"]\n")(members)
    path = archives.pack(archives.listed(changed), tmp_path / "b.tar.gz")
    with pytest.raises(
        ResultError, match=r"b.tar.gz: found no end within 1 s of CPU time; expected an archive that can be read"
    ):
        verify(path, RunOptions(jobs=1))
