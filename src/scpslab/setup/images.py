"""The parts that engines need: built once, kept by content in the user's cache folder, shared by all clones of the project."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import scpslab
from scpslab.errors import CapabilityError
from scpslab.setup import docker, guest, kernel, published, stack, tools, trust
from scpslab.setup.folders import whole_folder
from scpslab.setup.job import Job

PROJECT = Path(scpslab.__file__).parents[2]
NEEDED_BYTES = 4 * 10**9
PUBLISHED = "images/published.txt"
# Beside a product: what it was made with, and where its versions differ from the recipe's.
MADE = "made.json"
# User-Mode Linux exists for no other.
LAB_KERNEL_MACHINE = "x86_64"


@dataclass(frozen=True)
class Images:
    """Paths of the built parts; `hash` stands for the bytes of all of them."""

    kernel: Path
    boot_dir: Path
    tools_dir: Path
    hash: str


@dataclass(frozen=True)
class Program:
    """A program for the guest; `hash` stands for its bytes."""

    path: Path
    hash: str


@dataclass(frozen=True)
class Part:
    """One part to build: a function builds it from a recipe folder into a file or folder of that name. `sources`: the recipe's files.

    `made_with`: the programs of this machine on which the product's bytes depend.
    """

    name: str
    title: str
    recipe: str
    build: Callable[[Job], None]
    product: str
    sources: Callable[[Path], list[Path]]
    made_with: tuple[str, ...] = ()


def files_of(folder: Path) -> list[Path]:
    """The files of a recipe; folders inside are recipes of their own."""
    return sorted(file for file in folder.iterdir() if file.is_file())


TOOLS = Part("tools", "guest programs", "images/guest/tools", tools.build, "bin", files_of, ("gcc", "clang"))
GUEST = Part("guest", "guest image", "images/guest", guest.build, "guest.erofs", files_of, ("mkfs.erofs",))
KERNEL = Part("kernel", "lab kernel", "images/lab-kernel", kernel.build, "linux", files_of, ("gcc", "ld"))
STACK = Part("stack", "SCPS stack", "stack", stack.build, "scps", stack.sources, ("rustc", "gcc"))
DOCKER = Part("docker", "Docker and the images of nodes, for guests", ".", docker.build, "docker.erofs", docker.sources)
# The parts that every cell needs. The quickest comes first, so that missing packages show early.
PARTS = (TOOLS, GUEST, KERNEL)


def cache_dir() -> Path:
    """The folder of all built parts and cached results."""
    if given := os.environ.get("SCPSLAB_CACHE"):
        return Path(given).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "scpslab"


def recipe_hash(part: Part) -> str:
    """Hash of a recipe: its files with their names."""
    folder = PROJECT / part.recipe
    digest = hashlib.sha256()
    for file in part.sources(folder):
        digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def place(part: Part, cache: Path) -> Path:
    """The folder of a part in the cache, whether it exists or not. Machines of several kinds may share a home folder, and with it the cache."""
    machine = platform.machine()
    kind = "" if machine == LAB_KERNEL_MACHINE else f"-{machine}"
    return cache / part.name / f"{recipe_hash(part)}{kind}"


def find(part: Part, cache: Path) -> Path | None:
    """The path of a part in the cache; None if it is not there.

    Raises:
        CapabilityError: the part is there, but root may not run it.
    """
    product = place(part, cache) / part.product
    return trust.check(product) if product.exists() else None


def ensure(say: Callable[[str], None], with_docker: bool = False) -> Images:
    """Finds every part in the cache, or builds it; `say` receives every step and its time. `with_docker`: also the part for guests with containers.

    Raises:
        CapabilityError: something is missing on this machine or a build failed; nothing half-built is left in the cache.
    """
    if platform.machine() != LAB_KERNEL_MACHINE:
        raise CapabilityError(
            f"lab kernel: found a machine of type {platform.machine()}; expected {LAB_KERNEL_MACHINE}. Use --engine host as root (docs/vagrant.md)."
        )
    cache = cache_dir()
    with _disk_trouble(cache):
        products = {part.name: find(part, cache) or _build(part, cache, say) for part in (*PARTS, *([DOCKER] if with_docker else []))}
        boot = _boot_dir(cache, products["tools"], {f"{name}.erofs": products[name] for name in ("guest", "docker") if name in products})
        digest = hashlib.sha256()
        for name in ("kernel", "guest", "tools", *(["docker"] if with_docker else [])):
            digest.update(_content_hash(products[name]).encode())
    return Images(products["kernel"], boot, products["tools"], digest.hexdigest()[:16])


def ensure_stack(say: Callable[[str], None]) -> Program:
    """Finds the `scps` program in the cache, or builds it. Only cells with the stack `scps` or a serial line need it.

    Raises:
        CapabilityError: as `ensure`.
    """
    cache = cache_dir()
    with _disk_trouble(cache):
        path = find(STACK, cache) or _build(STACK, cache, say)
        return Program(path, _content_hash(path)[:16])


def ensure_tools(say: Callable[[str], None]) -> Path:
    """Finds the folder of the lab's small programs in the cache, or builds it.

    Raises:
        CapabilityError: as `ensure`.
    """
    cache = cache_dir()
    with _disk_trouble(cache):
        return find(TOOLS, cache) or _build(TOOLS, cache, say)


def ensure_programs(folder: Path, say: Callable[[str], None]) -> None:
    """Makes `folder` and puts those programs of the lab into it that the Docker images of nodes contain.

    Raises:
        CapabilityError: as `ensure`.
    """
    tools, stack = ensure_tools(say), ensure_stack(say)
    with _disk_trouble(folder):
        folder.mkdir(parents=True)
        for program in (tools / "labtool", tools / "iperf3-sleep.so", stack.path):
            shutil.copy2(program, folder)


@contextmanager
def _disk_trouble(cache: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CapabilityError(
            f"{error.filename or cache}: found {error.strerror or error}; expected a writable folder with free space. "
            "Free disk space, or set SCPSLAB_CACHE to another folder."
        ) from error


def timings(part: Part, cache: Path) -> list[tuple[str, float]]:
    """The steps of a part's build, with their seconds."""
    note = place(part, cache) / "timings.json"
    return [(title, taken_s) for title, taken_s in json.loads(note.read_text())] if note.exists() else []


def made(part: Part, cache: Path) -> tuple[published.Entry, list[str]] | None:
    """A built part as it would be published, and where its versions differ; None where it is not built, or was by a scpslab that took no note."""
    folder = place(part, cache)
    try:
        note = json.loads((folder / MADE).read_text())
    except FileNotFoundError:
        return None
    return published.Entry(part.name, recipe_hash(part), _content_hash(folder / part.product), note["tools"]), note["differs"]


def compare(part: Part, cache: Path) -> published.Verdict | None:
    """Is a part the published one? None where `made` is.

    Raises:
        CapabilityError: the file of published parts is damaged.
    """
    found = made(part, cache)
    return None if found is None else published.judge(part.title, *found, published.read(PROJECT / PUBLISHED))


def parts_facts(cache: Path) -> dict[str, dict[str, Any]]:
    """What a manifest says of the built parts."""
    facts = {}
    for part in (*PARTS, STACK):
        if (found := made(part, cache)) and (verdict := compare(part, cache)):
            facts[part.name] = {"sha256": found[0].sha256, "published": verdict.same, "tools": found[0].tools, "differs": found[1]}
    return facts


def _content_hash(product: Path) -> str:
    """Hash of a product's bytes. It is kept next to the product, because every start needs it and the image is large."""
    note = product.with_name(product.name + ".sha256")
    if not note.exists():
        digest = hashlib.sha256()
        for file in sorted(product.iterdir()) if product.is_dir() else [product]:
            digest.update(file.name.encode() + b"\0")
            with file.open("rb") as data:
                while block := data.read(1 << 20):
                    digest.update(block)
        note.write_text(digest.hexdigest() + "\n")
    return note.read_text().strip()


def _build(part: Part, cache: Path, say: Callable[[str], None]) -> Path:
    target = place(part, cache)
    with _locked(cache, part, say):
        if target.exists():
            return trust.check(target / part.product)
        _check_room(cache)
        work = target.with_name(target.name + ".part")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        # The log lies outside the folder that a failed build removes, because it says why the build failed.
        log = cache / f"{part.name}.log"
        log.write_bytes(b"")
        say(f"{part.title}: building, once for all clones (log: {log})")
        job = Job(part.title, PROJECT / part.recipe, work / part.product, log, say)
        try:
            part.build(job)
            _content_hash(job.target)
            (work / "timings.json").write_text(json.dumps(job.steps) + "\n")
            (work / MADE).write_text(json.dumps({"tools": published.tools(part.made_with), "differs": job.differs}) + "\n")
        except BaseException:
            _remove(work)
            raise
        work.rename(target)
        say(f"{part.title}: built in {sum(taken_s for _, taken_s in job.steps):.0f} s")
    verdict = compare(part, cache)
    if verdict is not None and verdict.same is False:
        say(verdict.text)
    return target / part.product


def _remove(folder: Path) -> None:
    """Removes a half-built folder, read-only folders of unpacked packages included."""
    for inside, folders, _ in os.walk(folder):
        for name in folders:
            path = Path(inside, name)
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _check_room(cache: Path) -> None:
    free = shutil.disk_usage(cache).free
    if free < NEEDED_BYTES:
        raise CapabilityError(
            f"{cache}: found {free / 1e9:.1f} GB free; expected {NEEDED_BYTES / 1e9:.0f} GB for the build. "
            "Free disk space, or set SCPSLAB_CACHE to another folder."
        )


@contextmanager
def _locked(cache: Path, part: Part, say: Callable[[str], None]) -> Iterator[None]:
    """Lets one process at a time build a part."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{part.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{part.title}: waiting for another process that is building it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def link_or_copy(source: Path, target: Path) -> None:
    """A second name for a file, without a copy of its bytes if the file system allows that."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def _boot_dir(cache: Path, programs: Path, images: dict[str, Path]) -> Path:
    """The folder from which the lab kernel starts: init, the images under the names that init knows, and empty folders as mount points."""

    def fill(work: Path) -> None:
        for folder in ("lower", "docker", "mnt"):
            (work / folder).mkdir()
        shutil.copy2(programs / "init", work / "init")
        for name, image in images.items():
            link_or_copy(image, work / name)

    return whole_folder(cache / "boot" / "-".join(part.parent.name for part in (*images.values(), programs)), fill)
