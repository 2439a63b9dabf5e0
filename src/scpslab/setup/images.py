"""The parts that engines need, kept by content and shared by all clones.

They are found in the user's cache folder or in the system cache, which is only read (trust.py), unpacked from the
wheel that carries them, or built.
"""

import fcntl
import hashlib
import json
import math
import os
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from scpslab.core import project
from scpslab.core.contents import digest_of
from scpslab.core.errors import CapabilityError
from scpslab.core.folders import whole_folder
from scpslab.setup import packed, published, recipes, trust
from scpslab.setup.job import Job, Say, silent
from scpslab.setup.recipes import built_by, files_of

PROJECT = project.ROOT
NEEDED_BYTES = 4 * 10**9
# Besides what is unpacked: a run and its results.
ROOM_TO_RUN_BYTES = 10**8
PUBLISHED = "images/published.txt"
SYSTEM_CACHE = "SCPSLAB_SYSTEM_CACHE"
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
class Built:
    """One part to build: a function builds it from a recipe folder into a file or folder of that name.

    `sources`: the recipe's files.

    `made_with`: the programs of this machine on which the product's bytes depend.
    """

    name: str
    title: str
    recipe: str
    build: Callable[[Any], None]
    product: str
    sources: Callable[[Path], list[Path]]
    made_with: tuple[str, ...] = ()


TOOLS = Built("tools", "guest programs", "images/guest/tools", built_by("programs"), "bin", files_of, ("gcc", "clang"))
GUEST = Built("guest", "guest image", "images/guest", built_by("guest"), "guest.erofs", files_of, ("mkfs.erofs",))
KERNEL = Built("kernel", "lab kernel", "images/lab-kernel", built_by("kernel"), "linux", files_of, ("gcc", "ld"))
# Of networks with addresses of IPv6 alone: the same cell has the same bytes whether or not the kernel could do more.
KERNEL_IPV6 = Built(
    "kernel-ipv6",
    "lab kernel with IPv6",
    "images/lab-kernel-ipv6",
    built_by("kernel", "build_with_ipv6"),
    "linux",
    recipes.with_lab_kernel,
    ("gcc", "ld"),
)
STACK = Built("stack", "SCPS stack", "stack", built_by("stack"), "scps", recipes.stack_files, ("rustc", "gcc"))
APPLIANCE = Built(
    "appliance",
    "appliance's kernel",
    "images/appliance",
    built_by("kernel", "build_appliance"),
    "bzImage",
    recipes.appliance_files,
    ("gcc", "ld"),
)
DOCKER = Built(
    "docker",
    "Docker and the images of nodes, for guests",
    ".",
    built_by("docker"),
    "docker.erofs",
    recipes.docker_files,
)
# The parts that every cell needs. The quickest comes first, so that missing packages show early.
PARTS = (TOOLS, GUEST, KERNEL)
# What a wheel carries (pack.py).
CARRIED = (*PARTS, STACK, APPLIANCE)


def cache_dir() -> Path:
    """The folder of all built parts and cached results.

    Raises:
        CapabilityError: nobody says where it is.
    """
    if named := os.environ.get("SCPSLAB_CACHE"):
        return Path(named).absolute()
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "scpslab"
    except RuntimeError as error:
        advice = "Set HOME or SCPSLAB_CACHE."
        raise CapabilityError(
            f"HOME: found none; expected the user's folder, in which results are. {advice}"
        ) from error


def system_cache() -> Path | None:
    """The folder of built parts and results that users of a machine share and that is only read; None if
    SCPSLAB_SYSTEM_CACHE names none.

    Raises:
        CapabilityError: the folder is not there.
    """
    if not (named := os.environ.get(SYSTEM_CACHE)):
        return None
    folder = Path(named).absolute()
    if not folder.is_dir():
        raise CapabilityError(
            f"{SYSTEM_CACHE}: found no folder {folder}; expected one with built parts and results. "
            f"Correct it, or unset {SYSTEM_CACHE}."
        )
    return folder


def recipe_hash(part: Built) -> str:
    """Hash of a recipe: its files with their names."""
    folder = PROJECT / part.recipe
    return digest_of((file, os.path.relpath(file, folder)) for file in part.sources(folder))[:16]


def place(part: Built, cache: Path, machine: str = LAB_KERNEL_MACHINE) -> Path:
    """The folder of a part for a kind of machine in the cache, whether it exists or not: machines of several kinds may
    share a home folder, and the cache.

    Everything in a guest is for x86-64, whatever runs it; only engine `host` and the images of nodes have programs of
    this machine.
    """
    kind = "" if machine == LAB_KERNEL_MACHINE else f"-{machine}"
    own = packed_of(part, machine)
    # Other compilers make other bytes of the same recipe; an installation uses the bytes that it came with.
    return cache / part.name / (f"{own.recipe}-{own.sha256[:16]}" if own else f"{recipe_hash(part)}{kind}")


def packed_of(part: Built, machine: str = LAB_KERNEL_MACHINE) -> packed.Packed | None:
    """The part as this installation carries it; None in a clone, and for machines of other kinds."""
    return packed.index(project.PACKED_PARTS).get(part.name) if machine == LAB_KERNEL_MACHINE else None


def carried() -> bool:
    """Whether this installation carries all parts that cells need, so that nothing is ever built."""
    return all(packed_of(part) for part in PARTS)


def find(part: Built, cache: Path, say: Say = silent, machine: str = LAB_KERNEL_MACHINE) -> Path | None:
    """The path of a part in the cache or the system cache; None if it must be built.

    A part that the installation carries is unpacked at first use.

    Raises:
        CapabilityError: the part is there, but it is damaged, or root may not run it; or it cannot be unpacked.
    """
    product = place(part, cache, machine) / part.product
    if not product.exists():
        own = packed_of(part, machine)
        if (shared := _in_system_cache(part, cache, machine)) is not None:
            trust.check_shared(shared, cache, own.sha256 if own else None, _digest)
            return trust.check(shared)
        if own is None:
            return None
        unpack(part, own, project.PACKED_PARTS, cache, say)
    return trust.check(product)


def _in_system_cache(part: Built, cache: Path, machine: str) -> Path | None:
    """The path of a part in the system cache, as it is there; None if it is not."""
    folder = system_cache()
    if folder is None or folder == cache:
        return None
    product = place(part, folder, machine) / part.product
    return product if product.exists() else None


def _folder(part: Built, cache: Path) -> Path:
    """The folder that a part is in, with what was noted of it."""
    own = place(part, cache)
    shared = None if own.exists() else _in_system_cache(part, cache, LAB_KERNEL_MACHINE)
    return shared.parent if shared else own


def ensure(say: Say, with_docker: bool = False, with_ipv6: bool = False) -> Images:
    """Finds every part in the cache, or builds it; `say` receives every step and its time.

    `with_docker`: also the part for guests with containers; `with_ipv6`: the kernel that has it.

    Raises:
        CapabilityError: something is missing on this machine or a build failed; nothing half-built is left in the
            cache.
    """
    with writing() as cache:
        wanted = (*PARTS, *([DOCKER] if with_docker else []))
        instead = {KERNEL.name: KERNEL_IPV6} if with_ipv6 else {}
        products = {part.name: _have(instead.get(part.name, part), cache, say) for part in wanted}
        in_boot = {f"{name}.erofs": products[name] for name in ("guest", "docker") if name in products}
        boot = _boot_dir(cache, products["tools"], in_boot)
        names = ("kernel", "guest", "tools", *(["docker"] if with_docker else []))
        every = "".join(_content_hash(products[name]) for name in names)
    return Images(products["kernel"], boot, products["tools"], hashlib.sha256(every.encode()).hexdigest()[:16])


def ensure_guest(say: Say) -> Program:
    """Finds the guest image in the cache, or builds it.

    Raises:
        CapabilityError: as `ensure`.
    """
    with writing() as cache:
        path = _have(GUEST, cache, say)
        return Program(path, _content_hash(path)[:16])


def ensure_boot_with(say: Say, layers: Mapping[str, Path], *, with_docker: bool = False) -> tuple[Path, str]:
    """A boot folder that has further layers over the guest image, each by its name in images/guest/tools/init.c, and a
    hash of the layers' bytes.

    Raises:
        CapabilityError: as `ensure`.
    """
    with writing() as cache:
        parts = (GUEST, DOCKER) if with_docker else (GUEST,)
        images = {f"{part.name}.erofs": _have(part, cache, say) for part in parts}
        images |= {f"{name}.erofs": layer for name, layer in layers.items()}
        boot = _boot_dir(cache, _have(TOOLS, cache, say), images)
        every = "".join(_content_hash(layer) for layer in layers.values())
    return boot, hashlib.sha256(every.encode()).hexdigest()[:16]


def ensure_stack(say: Say, machine: str = LAB_KERNEL_MACHINE) -> Program:
    """Finds the `scps` program in the cache, or builds it.

    Only cells with the stack `scps` or a serial line need it. `machine`: the kind that runs it.

    Raises:
        CapabilityError: as `ensure`.
    """
    with writing() as cache:
        path = _have(STACK, cache, say, machine)
        return Program(path, _content_hash(path)[:16])


def ensure_appliance(say: Say) -> Path:
    """Finds the kernel of the machine in which the lab kernel runs where it cannot run by itself, or builds it.

    Raises:
        CapabilityError: as `ensure`.
    """
    with writing() as cache:
        return _have(APPLIANCE, cache, say)


def ensure_tools(say: Say) -> Path:
    """Finds the folder of the lab's small programs for this machine in the cache, or builds it.

    Raises:
        CapabilityError: as `ensure`.
    """
    with writing() as cache:
        return _have(TOOLS, cache, say, platform.machine())


@contextmanager
def writing(folder: Path | None = None) -> Iterator[Path]:
    """The folder that is written, by default the cache; trouble with its disk says what to do."""
    cache = folder or cache_dir()
    try:
        yield cache
    except OSError as error:
        raise CapabilityError(
            f"{error.filename or cache}: found {error.strerror or error}; expected a writable folder with free space. "
            "Free disk space, or set SCPSLAB_CACHE to another folder."
        ) from error


def made(part: Built, cache: Path) -> tuple[published.Entry, list[str]] | None:
    """A built part as it would be published, and where its versions differ; None where it is not built, or was by a
    scpslab that took no note.
    """
    folder = _folder(part, cache)
    try:
        note = json.loads((folder / MADE).read_text())
    except FileNotFoundError:
        return None
    entry = published.Entry(part.name, recipe_hash(part), _content_hash(folder / part.product), note["tools"])
    return entry, note["differs"]


def compare(part: Built, cache: Path) -> published.Judgement | None:
    """Is a part the published one? None where `made` is.

    Raises:
        CapabilityError: the file of published parts is damaged.
    """
    product = made(part, cache)
    return None if product is None else published.judge(part.title, *product, published.read(PROJECT / PUBLISHED))


class PartFacts(TypedDict):
    """A built part: whether it is the published one (None: none is published for the recipe), and where versions
    differ.
    """

    sha256: str
    published: bool | None
    tools: str
    differs: list[str]


def parts_facts(cache: Path) -> dict[str, PartFacts]:
    """What a manifest says of the built parts."""
    facts: dict[str, PartFacts] = {}
    entries = published.read(PROJECT / PUBLISHED)
    for part in (*PARTS, STACK):
        if product := made(part, cache):
            entry, differs = product
            is_same = published.judge(part.title, entry, differs, entries).same
            facts[part.name] = {"sha256": entry.sha256, "published": is_same, "tools": entry.tools, "differs": differs}
    return facts


def _content_hash(product: Path) -> str:
    """Hash of a product's bytes.

    It is kept next to the product, because every start needs it and the image is large.
    """
    note = trust.note_of(product)
    if not note.exists():
        note.write_text(_digest(product) + "\n")
    return note.read_text().strip()


def _digest(product: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(product.iterdir()) if product.is_dir() else [product]:
        digest.update(file.name.encode() + b"\0")
        with file.open("rb") as data:
            hashlib.file_digest(data, lambda: digest)
    return digest.hexdigest()


def _have(part: Built, cache: Path, say: Say, machine: str = LAB_KERNEL_MACHINE) -> Path:
    """A part for a kind of machine: found, or built if this is one."""
    if found := find(part, cache, say, machine):
        return found
    if platform.machine() != machine:
        raise CapabilityError(
            f"{part.title}: found none in {cache}, and a machine of type {platform.machine()} cannot build it; "
            f"expected one from a machine of type {machine}. Take them from a wheel: make images WHEEL=FILE.whl; or "
            "copy the cache folder of such a machine (docs/platforms.md); or use --engine host as root."
        )
    return _build(part, cache, say)


def _build(part: Built, cache: Path, say: Say) -> Path:
    target = place(part, cache, platform.machine())
    with _locked(cache, part, say):
        if target.exists():
            return trust.check(target / part.product)
        _check_room(cache, NEEDED_BYTES, "the build")
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
            (work / MADE).write_text(
                json.dumps({"tools": published.tools(part.made_with), "differs": job.differs}) + "\n"
            )
        except BaseException:
            _remove(work)
            raise
        work.rename(target)
        say(f"{part.title}: built in {sum(taken_s for _, taken_s in job.steps):.0f} s")
    if platform.machine() == LAB_KERNEL_MACHINE and (verdict := compare(part, cache)) and verdict.same is False:
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


def unpack(part: Built, own: packed.Packed, folder: Path, cache: Path, say: Say) -> None:
    """Unpacks a part from a folder of packed parts into the cache: whole, and with the bytes that the wheel was made
    with, or not at all.

    Raises:
        CapabilityError: the packed part is damaged, or the cache cannot take it.
    """
    target = place(part, cache)
    with writing(cache), _locked(cache, part, say):
        if target.exists():
            return
        _check_room(cache, own.unpacked_bytes + ROOM_TO_RUN_BYTES, part.title)
        say(f"{part.title}: unpacking, once ({own.unpacked_bytes / 1e6:.0f} MB in {cache})")
        work = target.with_name(target.name + ".part")
        shutil.rmtree(work, ignore_errors=True)
        try:
            packed.unpack(own, folder, work)
            packed.check(own, folder, _content_hash(work / part.product))
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
        work.rename(target)


def _check_room(cache: Path, needed_bytes: int, purpose: str) -> None:
    free, needed = shutil.disk_usage(cache).free, f"{math.ceil(needed_bytes / 1e8) / 10:.1f}".removesuffix(".0")
    if free < needed_bytes:
        raise CapabilityError(
            f"{cache}: found {free / 1e9:.1f} GB free; expected {needed} GB for {purpose}. "
            "Free disk space, or set SCPSLAB_CACHE to another folder."
        )


@contextmanager
def _locked(cache: Path, part: Built, say: Say) -> Iterator[None]:
    """Lets one process at a time build or unpack a part."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{part.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{part.title}: waiting for another process that is making it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def link_or_copy(source: Path, target: Path) -> None:
    """A second name for a file, without a copy of its bytes if the file system allows that."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def _boot_dir(cache: Path, programs: Path, images: dict[str, Path]) -> Path:
    """The folder from which the lab kernel starts: init, the images under the names that init knows, and empty folders
    as mount points.
    """

    def fill(work: Path) -> None:
        for folder in ("lower", "docker", "pack", "programs", "mnt"):
            (work / folder).mkdir()
        shutil.copy2(programs / "init", work / "init")
        for name, image in images.items():
            link_or_copy(image, work / name)

    # By what is in them: the same recipes give other bytes with another compiler.
    name = "-".join(_content_hash(part)[:16] for part in (*images.values(), programs))
    if not (cache / "boot" / name).exists() and (shared := _shared_boot_dir(cache, programs, images, name)):
        return shared
    return whole_folder(cache / "boot" / name, fill)


def _shared_boot_dir(cache: Path, programs: Path, images: dict[str, Path], name: str) -> Path | None:
    """The system cache's own, if it has the same bytes: nobody then needs a copy of the image, which others may not
    give a second name.
    """
    folder = system_cache()
    if folder is None or folder == cache:
        return None
    found = folder / "boot" / name
    if not all((found / part).is_file() for part in ("init", *images)):
        return None
    if (found / "init").read_bytes() != (programs / "init").read_bytes():
        return None
    for image, product in images.items():
        if not (found / image).samefile(product):
            trust.check_shared(found / image, cache, _content_hash(product), _digest)
    trust.check(found / "init")
    return found
