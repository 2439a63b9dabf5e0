"""Docker for guests: dockerd and the images of nodes in one read-only file, mounted over the guest image if a plan asks
for containers.
"""

import re
import shutil
from pathlib import Path

from scpslab.core.errors import CapabilityError
from scpslab.setup.apt import download
from scpslab.setup.job import Job
from scpslab.setup.recipes import DOCKER_RECIPE
from tools.build.guest import SOURCE_DATE_EPOCH, lines

# containerd tells its shims, and through them runc and its hooks, to run on several processors. The guest has one. In
# virtual time nothing interrupts a thread that waits for another thread by spinning, as Go's sweeper does with several
# processors: it would wait for ever.
SEVERAL_PROCESSORS, ONE_PROCESSOR = re.compile(rb"GOMAXPROCS=[2-9]"), b"GOMAXPROCS=1"
SHIM_STARTERS = ("usr/bin/containerd", "usr/bin/containerd-shim-runc-v2")
# Where the lab program finds the images (lab/docker.py).
ARCHIVE = "usr/share/scpslab/nodes.tar"


def build(job: Job) -> None:
    """Builds the file, in the project's folder.

    Raises:
        CapabilityError: this machine has no Docker Engine to build the images of nodes, or a download failed.
    """
    recipe, root = job.recipe / DOCKER_RECIPE, job.work / "root"
    archive = root / ARCHIVE
    archive.parent.mkdir(parents=True)
    with job.step("build the images of nodes"):
        job.run([str(job.recipe / "tools/build-images"), "--save", str(archive)])
    with job.step("download Docker"):
        packages = job.work / "packages"
        packages.mkdir()
        for package in download(lines(recipe / "packages.txt"), packages, job):
            job.run(["dpkg-deb", "-x", str(package), str(packages / "root")])
    with job.step("make the image"):
        for name in lines(recipe / "excluded.txt"):
            path = packages / "root" / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name in SHIM_STARTERS:
            _on_one_processor(packages / "root" / name)
        shutil.copytree(packages / "root" / "usr", root / "usr", symlinks=True, dirs_exist_ok=True)
        archive.chmod(0o644)
        job.run(["mkfs.erofs", "--all-root", f"-T{SOURCE_DATE_EPOCH}", "-x-1", "--quiet", str(job.target), str(root)])
        for folder in (root, packages):
            shutil.rmtree(folder)


def _on_one_processor(program: Path) -> None:
    """Changes the setting that a program of containerd passes on.

    Raises:
        CapabilityError: the program has no such setting: it belongs to an unknown version of containerd.
    """
    code, count = SEVERAL_PROCESSORS.subn(ONE_PROCESSOR, program.read_bytes())
    if count != 1:
        raise CapabilityError(
            f"{program.name}: found GOMAXPROCS set in {count} places, an unknown version of containerd; "
            "expected one place. Use containers: process."
        )
    program.write_bytes(code)
