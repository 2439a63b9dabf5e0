"""The guest image: Debian 13 with the programs of a lab, as one read-only file (EROFS) that any user can build and the
lab kernel mounts.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from scpslab.core.errors import CapabilityError
from scpslab.setup.apt import SUITE, Apt, Place, places
from scpslab.setup.job import Job
from tools.build import notices, versions
from tools.build.versions import Versions

# With a fixed identity and no time stamps, the image is a function of the packages alone.
UUID = "5c905105-1ab0-4000-8000-000000000001"
SOURCE_DATE_EPOCH = "1700000000"
# In the image while packages are installed: the versions to prefer, also to newer ones (apt_preferences(5)).
PREFERENCES = "/etc/apt/preferences.d/scpslab"
PREFERRED = 1001


def build(job: Job) -> None:
    """Builds the image of the recipe folder (packages.txt, versions.txt, excluded.txt, customize.sh).

    Versions that no place has any more are replaced by the newest; `job.differs` then says which.

    Raises:
        CapabilityError: a tool is missing, a download failed, or the disk is full.
    """
    wanted = versions.read(job.recipe / versions.FILE)
    with job.step("look for the packages"):
        found = _places(wanted, job)
    job.differs += versions.differences(wanted, install(job, found, wanted))


def install(job: Job, found: list[Place], wanted: Versions | None) -> dict[str, str]:
    """Builds the image from some places, with the versions of a recipe where they have them; returns the versions of
    all its packages.

    Raises:
        CapabilityError: as `build`.
    """
    archive, root = job.work / "root.tar", job.work / "root"
    # The script is passed as text: in a user namespace of its own, mmdebstrap may have no access to the user's folders.
    script = (job.recipe / "customize.sh").read_text()
    with job.step("install the packages"):
        options = [f"--dpkgopt=path-exclude={path}" for path in lines(job.recipe / "excluded.txt")]
        options += [f"--dpkgopt=path-include=/{notices.DEBIAN}/*/copyright", *_preferences(wanted)]
        options += [f"--customize-hook={script}", SUITE, str(archive), *(place.line for place in found)]
        root_of_debian(job, lines(job.recipe / "packages.txt"), options, {"SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH})
    with job.step("make the image"):
        root.mkdir()
        # The same modes for every user; device nodes come from the kernel.
        job.run(
            [
                "tar",
                "--extract",
                "--file",
                str(archive),
                "--directory",
                str(root),
                "--no-same-owner",
                "--preserve-permissions",
                "--exclude=./dev/*",
            ]
        )
        archive.unlink()
        (job.work / notices.FILE).write_text(notices.take_from_debian(root))
        job.run(["mkfs.erofs", "--all-root", "-T0", "-x-1", "-U", UUID, "--quiet", str(job.target), str(root)])
        installed = _installed((root / "var/lib/dpkg/status").read_text(encoding="utf-8", errors="replace"))
        # Read-only folders of packages would keep a plain user from removing the tree.
        job.run(["chmod", "--recursive", "u+rwX", str(root)])
        shutil.rmtree(root)
    return installed


def root_of_debian(job: Job, packages: Sequence[str], options: Sequence[str], env: Mapping[str, str]) -> None:
    """Makes a root file system of Debian's with these packages; `options`: further words of mmdebstrap(1).

    Raises:
        CapabilityError: mmdebstrap is missing, or failed.
    """
    mode = "root" if os.geteuid() == 0 else "unshare"
    words = ["mmdebstrap", "--variant=apt", f"--mode={mode}", f"--include={','.join(packages)}"]
    settings = ("APT::Install-Recommends false", "Acquire::Languages none", "Acquire::Retries 3")
    job.run([*words, *(f"--aptopt={one}" for one in settings), *options], cwd=Path("/"), env=env)


def _places(wanted: Versions, job: Job) -> list[Place]:
    """The mirror, and the snapshot service where one is named, can be reached, and has versions that the mirror lacks.

    Raises:
        CapabilityError: the mirror cannot be reached.
    """
    chosen, lacking = list[Place](), {package.name: package.version for package in wanted.packages}
    for place in places(wanted.date, security=False):
        folder = job.work / "apt"
        try:
            offered = Apt(job, folder, [place]).versions(list(lacking))
        except CapabilityError:
            if place.needed:
                raise
            job.say(f"{job.title}: {place.title}: cannot be reached; {len(lacking)} packages come in other versions")
            offered = {}
        shutil.rmtree(folder)
        here = {name for name, version in lacking.items() if version in offered.get(name, ())}
        if here or place.needed:
            chosen.append(place)
        lacking = {name: version for name, version in lacking.items() if name not in here}
        if not lacking:
            break
    return chosen


def _preferences(wanted: Versions | None) -> list[str]:
    """The options that make apt prefer versions. A version that no place has changes nothing."""
    if wanted is None:
        return []
    entries = "\n".join(
        f"Package: {package.name}\nPin: version {package.version}\nPin-Priority: {PREFERRED}\n"
        for package in wanted.packages
    )
    write = f'mkdir -p "$1/etc/apt/preferences.d"\ncat >"$1{PREFERENCES}" <<\'END\'\n{entries}END\n'
    return [f"--setup-hook={write}", f'--customize-hook=rm "$1{PREFERENCES}"']


def _installed(status: str) -> dict[str, str]:
    """Names and versions in dpkg's status file."""
    found = {}
    for paragraph in status.split("\n\n"):
        fields = dict(
            line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and not line.startswith(" ")
        )
        if fields.get("Status", "").endswith(" installed"):
            found[fields["Package"]] = fields["Version"]
    return found


def lines(file: Path) -> list[str]:
    """The lines of a list in a recipe: one item each, without comments."""
    return [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
