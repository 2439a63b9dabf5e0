"""Layers over the guest image for plans that name packages, or have programs of the user's: read-only EROFS files, kept
by content.

No root, no maintainer scripts: files of Debian packages are unpacked, with those that they need and the guest lacks;
wheels of PyPI are installed into a folder; crates are compiled by the user's cargo. What is in the cache needs no
network.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import sys
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from scpslab.core.errors import CapabilityError
from scpslab.core.folders import whole_folder
from scpslab.core.scratch import replace_bytes
from scpslab.plan.packs import Pack, Wanted, wanted
from scpslab.setup import apt
from scpslab.setup.images import GUEST, LAB_KERNEL_MACHINE, ensure_guest, writing
from scpslab.setup.job import Job, Say

FOLDER = "packs"
# Of layers by the names that images/guest/tools/init.c knows; the folder of the user's programs in a guest.
PACK, PROGRAMS, PLACE = "pack", "programs", "opt/programs"
VERSIONS = "versions.json"
MERGED = ("bin", "sbin", "lib", "lib64")
UUID, TIME = "5c905105-1ab0-4000-8000-000000000002", "1700000000"
WHEELS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "any")
SCRIPT = re.compile(rb"#![^\n]*python[^\n]*\n")
NOT_SHIPPED = ("usr/share/man", "usr/share/locale", "usr/share/info")
DIGITS = 16


@dataclass(frozen=True)
class Layer:
    """A layer in the cache, and the versions of what is in it."""

    path: Path
    versions: Mapping[str, str]


@dataclass(frozen=True)
class _Guest:
    """What the guest image has: dpkg's status, and the version of its Python, such as 3.13."""

    status: str
    python: str

    @property
    def modules(self) -> str:
        """The folder of modules that no package of Debian's brings."""
        return f"usr/local/lib/python{self.python}/dist-packages"


def ensure_layers(pack: Pack, say: Say) -> dict[str, Layer]:
    """The layers of a pack by the names that init knows; those that are not in the cache are built.

    Raises:
        CapabilityError: a program or the network is missing, a registry lacks a package, or the user's programs are
            not in the cache.
    """
    layers = {}
    if pack.programs:
        layers[PROGRAMS] = _programs(pack.programs, say)
    if pack.packages:
        layers[PACK] = _packages(pack.packages, say)
    return layers


def keep_programs(content: bytes) -> str:
    """Keeps a tar of the user's programs in the cache, from which engines take it; returns its SHA-256."""
    sha256 = hashlib.sha256(content).hexdigest()
    with writing() as cache:
        target = cache / FOLDER / f"{sha256}.tar"
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            replace_bytes(target, content)
    return sha256


def kept() -> Iterator[tuple[Sequence[str], Layer]]:
    """The packs of packages in the cache, each with the names that it was asked for by."""
    with writing() as cache:
        for note in sorted((cache / FOLDER).glob(f"{'[0-9a-f]' * DIGITS}/{VERSIONS}")):
            said = json.loads(note.read_text())
            yield said["packages"], Layer(note.with_name(f"{PACK}.erofs"), said["versions"])


def _packages(packages: Sequence[str], say: Say) -> Layer:
    guest = ensure_guest(say)
    names = sorted(set(packages))
    key = hashlib.sha256("\n".join([guest.hash, *names]).encode()).hexdigest()[:DIGITS]

    def fill(job: Job) -> None:
        root, facts = job.work / "root", _facts(guest.path, guest.hash, job)
        root.mkdir()
        asked = [found for name in names if (found := wanted(name))]
        versions: dict[str, str] = {}
        for registry, install in (("debian", _debian), ("pypi", _pypi), ("crate", _crates)):
            if of_registry := [one for one in asked if one.registry == registry]:
                versions |= install(of_registry, root, facts, job)
        (job.work / VERSIONS).write_text(json.dumps({"packages": names, "versions": versions}, indent=1) + "\n")
        _image(root, job)

    path = _built(key, PACK, f"pack {', '.join(names)}", fill, say)
    versions: dict[str, str] = json.loads(path.with_name(VERSIONS).read_text())["versions"]
    return Layer(path, versions)


def _programs(sha256: str, say: Say) -> Layer:
    guest = ensure_guest(say)
    with writing() as cache:
        content = cache / FOLDER / f"{sha256}.tar"

    def fill(job: Job) -> None:
        if not content.is_file():
            raise CapabilityError(
                f"programs {sha256[:DIGITS]}: found none in {content.parent}; expected the folder that the scenario "
                "names. Run the scenario once on this machine, from its folder."
            )
        root, facts = job.work / "root", _facts(guest.path, guest.hash, job)
        place, commands, modules = root / PLACE, root / "usr/local/bin", root / facts.modules
        for folder in (place, commands, modules):
            folder.mkdir(parents=True)
        with tarfile.open(content) as packed:
            packed.extractall(place, filter="data")
        for file in sorted((*place.iterdir(), *place.glob("bin/*"))):
            if file.is_file() and os.access(file, os.X_OK) and not (commands / file.name).is_symlink():
                (commands / file.name).symlink_to(f"/{file.relative_to(root)}")
        (modules / "programs.pth").write_text(f"/{PLACE}\n")
        _image(root, job)

    return Layer(_built(sha256[:DIGITS], PROGRAMS, "programs", fill, say), {PROGRAMS: sha256})


def _built(key: str, name: str, title: str, fill: Callable[[Job], None], say: Say) -> Path:
    """The layer in the cache; else `fill` builds it."""
    with writing() as cache:
        folder = cache / FOLDER / key
        log = cache / FOLDER / f"{key}.log"

        def build(work: Path) -> None:
            say(f"{title}: building, once (log: {log})")
            log.write_bytes(b"")
            job = Job(title, work, work / f"{name}.erofs", log, say)
            fill(job)
            for left in work.iterdir():
                if left.name not in (job.target.name, VERSIONS):
                    _remove(left)
            size_mb, taken_s = job.target.stat().st_size / 1e6, sum(taken_s for _, taken_s in job.steps)
            say(f"{title}: built in {taken_s:.0f} s, {size_mb:.1f} MB")

        return whole_folder(folder, build) / f"{name}.erofs"


def _remove(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink()
        return
    for folder, _, _ in os.walk(path):
        Path(folder).chmod(0o700)
    shutil.rmtree(path)


def _facts(image: Path, digest: str, job: Job) -> _Guest:
    """What the guest image says of itself; it is unpacked once."""

    def fill(work: Path) -> None:
        tree = job.work / "guest"
        with job.step("look into the guest image"):
            job.run(["fsck.erofs", f"--extract={tree}", "--no-preserve", str(image)])
        shutil.copyfile(tree / "var/lib/dpkg/status", work / "status")
        (work / "python").write_text((tree / "usr/bin/python3").readlink().name.removeprefix("python"))
        _remove(tree)

    with writing() as cache:
        folder = whole_folder(cache / FOLDER / f"{GUEST.name}-{digest}", fill)
    return _Guest((folder / "status").read_text(errors="replace"), (folder / "python").read_text())


def _image(root: Path, job: Job) -> None:
    with job.step("make the layer"):
        identity = ["--all-root", f"-T{TIME}", "-x-1", "-U", UUID]
        job.run(["mkfs.erofs", *identity, "--quiet", str(job.target), str(root)])


def _debian(asked: Iterable[Wanted], root: Path, guest: _Guest, job: Job) -> dict[str, str]:
    """Unpacks packages of Debian, and what they need besides the guest's."""
    words = [one.name if one.version is None else f"{one.name}={one.version}" for one in asked]
    with job.step("fetch packages of Debian"):
        place = apt.Place(apt.mirror(), apt.sources_line(), needed=True)
        files = apt.Apt(job, job.work / "apt", [place], guest.status).download_with_dependencies(words)
    versions = {}
    for file in files:
        job.run(["dpkg-deb", "--extract", str(file), str(root)])
        name, version = job.output(["dpkg-deb", "--show", "--showformat=${Package} ${Version}", str(file)]).split()
        versions[name] = version
    for name in NOT_SHIPPED:
        shutil.rmtree(root / name, ignore_errors=True)
    for page in sorted((root / "usr/share/doc").glob("*/*")):
        if page.name != "copyright" and not page.parent.is_symlink():
            _remove(page)
    # The guest has links in these places, which a folder of a layer would hide.
    for name in MERGED:
        if (folder := root / name).is_dir() and not folder.is_symlink():
            shutil.copytree(folder, root / "usr" / name, symlinks=True, dirs_exist_ok=True)
            _remove(folder)
    return versions


def _pip(folder: Path, words: Sequence[str], job: Job) -> None:
    """Installs packages of PyPI into a folder."""
    pip, quiet = job.work / "pip", ["--disable-pip-version-check", "--no-input", "--no-compile", "--only-binary=:all:"]
    install = [sys.executable, "-m", "pip", "install", *quiet, "--target"]
    if not pip.exists():
        # This machine's own may be too old to find versions that fit together.
        job.run([*install, str(pip), "pip"])
    job.run([*install, str(folder), *words], env={"PYTHONPATH": str(pip)})


def _pypi(asked: Iterable[Wanted], root: Path, guest: _Guest, job: Job) -> dict[str, str]:
    """Installs wheels for the guest's Python, with what they need."""
    target, commands = root / guest.modules, root / "usr/local/bin"
    of_guest = ["--implementation", "cp", "--python-version", guest.python, *(f"--platform={name}" for name in WHEELS)]
    with job.step("fetch packages of PyPI"):
        _pip(target, [*of_guest, *(f"{one.name}=={one.version}" for one in asked)], job)
    if (target / "bin").is_dir():
        commands.mkdir(parents=True, exist_ok=True)
        for script in sorted((target / "bin").iterdir()):
            script.write_bytes(SCRIPT.sub(b"#!/usr/bin/python3\n", script.read_bytes(), count=1))
            script.rename(commands / script.name)
    found = (folder.name.removesuffix(".dist-info").rpartition("-") for folder in target.glob("*.dist-info"))
    return {f"pypi:{name}": version for name, _, version in sorted(found)}


def _crates(asked: Iterable[Wanted], root: Path, _guest: _Guest, job: Job) -> dict[str, str]:
    """Compiles crates, each with the versions of its own lock file; each once for all packs."""
    commands = root / "usr/local/bin"
    commands.mkdir(parents=True, exist_ok=True)
    versions = {}
    for one in asked:
        with writing() as cache:
            place = cache / FOLDER / "crates" / f"{one.name}-{one.version}"
            made = whole_folder(place, partial(_compile, one, job))
        for program in sorted((made / "bin").iterdir()):
            shutil.copy2(program, commands / program.name)
        versions[f"crate:{one.name}"] = str(one.version)
    return versions


def _compile(one: Wanted, job: Job, folder: Path) -> None:
    name = f"crate:{one.name}@{one.version}"
    if platform.machine() != LAB_KERNEL_MACHINE:
        found = f"a machine of type {platform.machine()}"
        raise CapabilityError(f"{name}: found {found}; expected {LAB_KERNEL_MACHINE}, for which guests are compiled.")
    if shutil.which("cargo") is None:
        advice = "Install it (on Debian 13: apt-get install cargo)"
        raise CapabilityError(f"{name}: found no cargo; expected one that compiles the crate. {advice}.")
    path = os.environ.get("PATH", "")
    if shutil.which("cmake") is None:
        # Some crates compile libraries with it, and few machines have it.
        _pip(job.work / "cmake", ["cmake"], job)
        path = f"{path}:{job.work / 'cmake/cmake/data/bin'}"
    words = ["--locked", "--root", str(folder), "--target-dir", str(job.work / "target"), f"{one.name}@{one.version}"]
    with job.step(f"compile {name}"):
        job.run(["cargo", "install", *words], env={"PATH": path})
