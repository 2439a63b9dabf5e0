"""The package that a recipe builds from: the version and the bytes that it was published with, wherever some place
still has them.
"""

import hashlib
import os
from pathlib import Path

from scpslab.core.errors import CapabilityError
from scpslab.setup.apt import Apt, Place, places
from scpslab.setup.job import Job
from tools.build.versions import Package, Versions, of_file

VARIABLE = "SCPSLAB_KERNEL_SOURCE"


def fetch(versions: Versions, folder: Path, job: Job) -> Path:
    """The file of the recipe's only package, in `folder`: from the user's folder, the mirror, its security updates, the
    snapshot service.

    Where none of them has that version any more, the newest of the same name; `job.differs` then says so.

    Raises:
        CapabilityError: no place has any version, or there is no network.
    """
    (package,) = versions.packages
    if own := _own(package, job):
        return own
    reached: list[Place] = []
    failures: list[CapabilityError] = []
    for number, place in enumerate(places(versions.date, security=True)):
        try:
            apt = Apt(job, folder / f"apt-{number}", [place])
            reached.append(place)
            if package.version in apt.versions([package.name])[package.name]:
                (file,) = apt.download([f"{package.name}={package.version}"], folder)
                if _matches(file, package, job):
                    return file
        except CapabilityError as error:
            failures.append(error)
    if not reached:
        raise failures[0]
    (file,) = Apt(job, folder / "apt", reached).download([package.name], folder)
    job.differs.append(f"{package.name} {of_file(file)} for {package.version}")
    return file


def _own(package: Package, job: Job) -> Path | None:
    """The file that the user gives, or the one in the folder that the user gives, if it is the recipe's."""
    given = os.environ.get(VARIABLE)
    if not given:
        return None
    place = Path(given)
    files = sorted(place.glob(f"{package.name}_*.deb")) if place.is_dir() else [place] if place.is_file() else []
    if found := next((file for file in files if _matches(file, package, job)), None):
        return found
    if not files:
        job.say(
            f"{job.title}: {VARIABLE}={given}: found no {package.name}_*.deb there; "
            "expected the package's file or its folder. Looking elsewhere."
        )
    return None


def _matches(file: Path, package: Package, job: Job) -> bool:
    with file.open("rb") as data:
        found = hashlib.file_digest(data, "sha256").hexdigest()
    if found != package.sha256:
        job.say(
            f"{job.title}: {file}: found SHA-256 {found}; expected {package.sha256}, that of {package.name} "
            f"{package.version}. Looking elsewhere."
        )
    return found == package.sha256
