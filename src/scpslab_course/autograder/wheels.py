"""Collects wheels: that of scpslab, which `make wheel` makes and people install, and those of what grading needs, in the versions of this installation."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from scpslab.core.errors import CapabilityError, UsageError
from scpslab.core.installation import add_extra
from scpslab.core.version import version
from scpslab.setup import cache_dir
from scpslab.setup.images import parts_facts
from scpslab_course.autograder.build import Wheels

# What grading imports: pictures are not drawn, so that the largest libraries stay away.
NEEDED = ("cryptography", "jinja2", "mpmath", "numpy", "pydantic", "pyyaml", "rich", "typer")
PARTS = "scpslab/project_files/parts/parts.json"
# Names of wheels (PyPA: binary distribution format): NAME-VERSION-…
WHEEL = re.compile(r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[^-]+)-.*\.whl")
PLATFORMS = ("manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64")
MAKE = 'Make it ("make wheel" in a clone), or name the file from which you have installed'


def collect(own: Path, pythons: Sequence[str], folder: Path) -> Wheels:
    """The wheels for these versions of Python; those that are missing are downloaded into `folder`.

    Raises:
        UsageError: `own` is not the wheel of this scpslab.
        CapabilityError: wheels cannot be downloaded.
    """
    check_own(own)
    pins = {_normal(one.name): one.version for one in importlib.metadata.distributions()}
    missing = [name for name in NEEDED if name not in pins]
    if missing:
        raise CapabilityError(f"Python packages: found no {', '.join(missing)}; expected what grading needs. Run: {add_extra('course')}.")
    constraints = folder / "constraints.txt"
    constraints.write_text("".join(f"{name}=={pinned}\n" for name, pinned in sorted(pins.items()) if name != "scpslab"))
    for python in pythons:
        _download(python, constraints, folder)
    files = sorted(folder.glob("*.whl"))
    found = {_normal(match["name"]): match["version"] for file in files if (match := WHEEL.fullmatch(file.name))}
    requirements = [f"{name}=={pinned}" for name, pinned in sorted(found.items())]
    return Wheels([own, *files], [f"scpslab=={version()}", *requirements], pythons)


def check_own(wheel: Path) -> None:
    """Makes sure that a wheel is that of this program, with the parts that are used here: others give other bytes than the students' runs have.

    Raises:
        UsageError: it is not.
    """
    match = WHEEL.fullmatch(wheel.name)
    if match is None or match["name"] != "scpslab" or not wheel.is_file():
        raise UsageError(f"--wheel {wheel}: found no wheel of scpslab; expected scpslab-{version()}-….whl. {MAKE}.")
    if match["version"] != version():
        raise UsageError(f"--wheel {wheel}: found version {match['version']}; expected {version()}, which runs here. {MAKE}.")
    try:
        with zipfile.ZipFile(wheel) as archive:
            parts = json.loads(archive.read(PARTS))["parts"]
            carried = {str(part["name"]): str(part["sha256"]) for part in parts}
    except (OSError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise UsageError(f"--wheel {wheel}: found no built parts in it ({type(error).__name__}); expected them. {MAKE}.") from error
    for name, facts in parts_facts(cache_dir()).items():
        if carried.get(name) != facts["sha256"]:
            raise UsageError(
                f"--wheel {wheel}: {name}: found SHA-256 {carried.get(name, 'of none')[:12]}; expected {facts['sha256'][:12]}, which runs here: "
                "otherwise the grader's bytes differ from the students'. Everybody of a course needs the same wheel, or clones with the same parts."
            )


def _download(python: str, constraints: Path, folder: Path) -> None:
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:", "--dest", str(folder)]
    words += ["--python-version", python, "--implementation", "cp", *_repeated("--platform", PLATFORMS), "--constraint", str(constraints), *NEEDED]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise CapabilityError(
            f"wheels for Python {python}: found {last}; expected them from the package index. Connect to the network, or choose another --python."
        )


def _repeated(option: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
