"""Archives whose plans and scenarios name any paths: `verify` refuses or repeats them, writes in its own folders only,
and touches no file that they name.

Each draw is verified in a child that Landlock lets write in a scratch folder only, and whose every opened, made,
removed, renamed or asked-for path is looked at. SCPSLAB_HOSTILE_PLANS says how many are drawn; what they write is
compared file by file for some of them.
"""

import ctypes
import json
import os
import random
import sys
import tempfile
from pathlib import Path

import pytest

from scpslab.core.errors import ScpslabError
from scpslab.core.limited import WorkLimits, limited
from scpslab.engine.cell_folder import write_vectors
from scpslab.running import RunOptions
from scpslab.running.verify import verify
from scpslab.runs.archive import write_archive
from tests import archives
from tests.cases import document

DRAWS = int(os.environ.get("SCPSLAB_HOSTILE_PLANS", "200"))
COMPARED = 50
SCENARIO = document("scenario with vectors and a policy")
NAMES = [
    "gaps.txt",
    "gaps.bits",
    "policy.py",
    "scenario.yaml",
    "new.py",
    "dangling.py",
    "pipe",
    "private.bits",
    "vectors",
    "topologies.json",
]
PAYLOAD = "open('/tmp/owned', 'w').close()\n"


@pytest.fixture
def archive(tmp_path, run_fake, monkeypatch):
    """A run with stored vectors and a policy, packed: its members by name.

    Its engine writes vectors into the cell's folder, as all do.
    """
    folder = tmp_path / "mine"
    (folder / "vectors").mkdir(parents=True)
    (folder / "gaps.txt").write_text("100\n200\n")
    (folder / "vectors" / "gaps.bits").write_bytes(bytes(100) + b"\1")
    (folder / "policy.py").write_text("class Policy:\n    pass\n")
    (folder / "mine.yaml").write_text(SCENARIO)
    packed = write_archive([run_fake(str(folder / "mine.yaml")).folder], tmp_path / "a.tar.gz")
    fake = run_fake.__closure__ and sys.modules["scpslab.running.runner"].ENGINES["virtual"]
    runs = fake.run

    def run(self, cell):
        with tempfile.TemporaryDirectory() as inside:
            write_vectors(cell.plan, Path(inside))
        return runs(self, cell)

    monkeypatch.setattr(fake, "run", run)
    return archives.members(packed)


@pytest.fixture
def traps(tmp_path):
    """A folder that nobody may touch: files, links to nowhere and to folders, a pipe that holds who opens it."""
    folder = tmp_path / "traps"
    (folder / "vectors").mkdir(parents=True)
    (folder / "gaps.txt").write_text("100\n200\n")
    (folder / "private.bits").write_bytes(b"secret")
    (folder / "dangling.py").symlink_to(folder / "new.py")
    (folder / "dangling").symlink_to(folder / "nowhere")
    (folder / "vectors" / "up").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    return folder


def hostile(rng, traps):
    """A path as nobody means well by it."""
    name = rng.choice(NAMES)
    folder = rng.choice([traps, traps / "vectors", traps / "dangling", traps / "vectors" / "up", traps / "none"])
    return rng.choice(
        [
            f"{folder}/{name}",
            f"/{folder}/./{name}",
            f"{folder}/../{folder.name}/{name}",
            f"/vectors/../../../../../../../..{folder}/{name}",
            f"../../../../../../..{folder}/{name}",
            f"../{name}",
            f"/{name}",
            name,
            f"vectors/{name}",
            f"./{name}",
            f"{folder}/{'n' * rng.choice([200, 255, 256, 5000])}.py",
            "/" + "d/" * rng.choice([10, 3000]) + name,
            f"{folder}\\{name}",
            f"{folder}/a\nb.py",
            f"{folder}/\u202e{name}",
            f"{folder}/{'ü' * 200}.py",
            "/proc/kmsg",
            "/dev/zero",
            "/proc/self/fd/0",
            "",
            "/",
            "..",
        ]
    )


def texts(value, at=()):
    """The way to every text of a JSON value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from texts(inner, (*at, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from texts(inner, (*at, index))
    elif isinstance(value, str):
        yield at


def put(value, at, text):
    """Another text at a place."""
    for step in at[:-1]:
        value = value[step]
    value[at[-1]] = text


def changed_plan(rng, content, traps):
    """A plan whose vectors and policy have other names, and now and then any text of which is another one."""
    plan = json.loads(content)
    vectors = [one["errors"]["settings"] for one in plan["cell"]["impairments"] if "errors" in one]
    for settings in vectors:
        if "file" in settings and rng.random() < 0.8:
            path = hostile(rng, traps)
            settings["file"] = path if path.startswith("/") or rng.random() < 0.1 else f"/{path}"
    policy = next(workload for workload in plan["cell"]["workloads"] if workload["kind"] == "policy")
    if rng.random() < 0.7:
        policy["code"] = PAYLOAD
        policy["file"] = rng.choice([Path(vectors[0].get("file", "x")).name[:60], "policy.py", "new.py", "dangling.py"])
    if rng.random() < 0.1:
        policy["file"] = hostile(rng, traps)
    if rng.random() < 0.1:
        put(plan, rng.choice(list(texts(plan))), hostile(rng, traps))
    return json.dumps(plan).encode()


def changed_scenario(rng, content, traps):
    """A scenario with other paths in it."""
    for word in (b"gaps.txt", b"vectors/gaps.bits", b"policy.py", b"fy97"):
        if rng.random() < 0.3:
            content = content.replace(word, json.dumps(hostile(rng, traps)).encode(), 1)
    return content


def changed_json(rng, content, traps, *further):
    """Another text somewhere in JSON."""
    value = json.loads(content)
    put(value, rng.choice([*texts(value), *further]), hostile(rng, traps))
    return json.dumps(value).encode()


def drawn(rng, members, traps):
    """An archive in which some names are hostile ones, with the right digests."""
    files, inputs = dict(members), []
    for name, content in members.items():
        if name.endswith("/plan.json"):
            files[name] = changed_plan(rng, content, traps)
        elif name.endswith("/scenario.resolved.yaml"):
            files[name] = changed_scenario(rng, content, traps)
        elif name.endswith("/manifest.json") and rng.random() < 0.3:
            files[name] = changed_json(rng, content, traps, ("file",))
    if rng.random() < 0.1:
        inputs = [hostile(rng, traps)]
        files[f"{json.loads(files['archive.json'])['runs'][0]['run']}/{inputs[0]}"] = PAYLOAD.encode()
    files = archives.listed(files, inputs)
    if rng.random() < 0.1:
        files["archive.json"] = changed_json(rng, files["archive.json"], traps)
    return files


class _Attributes(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64),)


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("fd", ctypes.c_int32))


# What changes a file system (linux/landlock.h): to write files, to make and to remove things; since version 2 to move
# them between folders.
WRITING, MOVING = sum(1 << bit for bit in (1, *range(4, 13))), 1 << 13


def confine(*folders):
    """Lets this process write there only, for ever; returns whether its machine can."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(444, None, 0, 1) < 2:
        return False
    rights = WRITING | MOVING
    ruleset = libc.syscall(444, ctypes.byref(_Attributes(rights)), ctypes.sizeof(_Attributes), 0)
    for folder in folders:
        beneath = _Beneath(rights if Path(folder).is_dir() else 1 << 1, os.open(folder, os.O_PATH))
        assert libc.syscall(445, ruleset, 1, ctypes.byref(beneath), 0) == 0
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.syscall(446, ruleset, 0) == 0
    return True


class Watch:
    """Writes to `log` what is opened, changed or asked for of the traps, and what is changed outside of the scratch
    folder.
    """

    # Python audits no question whether a file is there.
    questions = ("stat", "lstat", "readlink", "access")
    reads = ("os.listdir", "os.scandir", "os.putenv", "os.unsetenv", *(f"os.{name}" for name in questions))

    def __init__(self, scratch, traps, log):
        self.scratch, self.log, self.is_on = scratch, log, True
        self.never = (str(traps), "/proc/kmsg", "/dev/zero")
        sys.addaudithook(self.look)
        for name in self.questions:
            setattr(os, name, self.asked(f"os.{name}", getattr(os, name)))

    def asked(self, event, ask):
        """The function, watched."""

        def watched(path, *arguments, **keys):
            self.look(event, (path,))
            return ask(path, *arguments, **keys)

        return watched

    def look(self, event, arguments):
        """An event of this process."""
        if not self.is_on or (event != "open" and not event.startswith("os.")):
            return
        is_change = (
            arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) if event == "open" else event not in self.reads
        )
        for path in (
            str(Path(os.fsdecode(one)).absolute()) for one in arguments if isinstance(one, str | bytes | os.PathLike)
        ):
            # Names within an open folder, which shutil.rmtree has, are those of a scratch folder.
            is_outside = not path.startswith((str(self.scratch), os.devnull)) and os.sep in str(arguments[0])
            if path.startswith(self.never) or (is_change and is_outside):
                os.write(self.log, f"{event} {path}\n".encode())


def tree(*folders):
    """Everything in folders: kinds, contents, targets of links."""
    found = {}
    for folder in folders:
        for path in [folder, *folder.rglob("*")]:
            at = path.lstat()
            content = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
            found[str(path)] = (at.st_mode, at.st_mtime_ns, content)
    return found


def test_whatever_paths_an_archive_names_nothing_outside_is_written_or_opened(archive, traps, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    others = (traps, tmp_path / "mine", tmp_path / "runs")
    log = scratch / "log"

    def work():
        before = tree(*others)
        assert confine(scratch, os.devnull, tmp_path / "cache", tmp_path / "memory"), "this machine has no Landlock"
        with pytest.raises(PermissionError):
            (tmp_path / "new").write_text("")
        tempfile.tempdir = str(scratch)
        os.chdir(scratch)
        watch = Watch(tmp_path, traps, os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
        ended = {"same": 0, "different": 0, "refused": 0}
        for seed in range(DRAWS):
            path = scratch / "drawn.tar.gz"
            archives.pack(drawn(random.Random(seed), archive, traps), path)
            try:
                found = verify(path, RunOptions(jobs=1))
                ended["same" if found[0].is_same else "different"] += 1
            except PermissionError:
                raise
            except (ScpslabError, OSError):
                # Names that are too long are the system's to refuse.
                ended["refused"] += 1
            if seed < COMPARED or seed == DRAWS - 1:
                watch.is_on = False
                assert tree(*others) == before, seed
                assert sorted(entry.name for entry in scratch.iterdir()) == ["drawn.tar.gz", "log"], seed
                watch.is_on = True
        return ended

    ended = limited(work, WorkLimits(memory_bytes=2 << 30, cpu_s=3600, wall_s=7200))
    assert log.read_text() == ""
    # The draws reach every end.
    assert ended["different"] > DRAWS / 10
    assert ended["refused"] > DRAWS / 10
