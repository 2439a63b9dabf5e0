"""The guest image: Debian 13 with the programs of a lab, as one read-only file (EROFS) that any user can build and the lab kernel mounts."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from scpslab.setup.apt import SUITE, sources_line
from scpslab.setup.job import Job

# With a fixed identity and no time stamps, the image is a function of the packages alone.
UUID = "5c905105-1ab0-4000-8000-000000000001"
SOURCE_DATE_EPOCH = "1700000000"


def build(job: Job) -> None:
    """Builds the image of the recipe folder (packages.txt, excluded.txt, customize.sh).

    Raises:
        CapabilityError: a tool is missing, a download failed, or the disk is full.
    """
    archive, root = job.work / "root.tar", job.work / "root"
    # The script is passed as text: in a user namespace of its own, mmdebstrap may have no access to the user's folders.
    script = (job.recipe / "customize.sh").read_text()
    with job.step("install the packages"):
        job.run(
            [
                "mmdebstrap",
                "--variant=apt",
                f"--mode={'root' if os.geteuid() == 0 else 'unshare'}",
                f"--include={','.join(lines(job.recipe / 'packages.txt'))}",
                *(f"--dpkgopt=path-exclude={path}" for path in lines(job.recipe / "excluded.txt")),
                "--aptopt=APT::Install-Recommends false",
                "--aptopt=Acquire::Languages none",
                "--aptopt=Acquire::Retries 3",
                f"--customize-hook={script}",
                SUITE,
                str(archive),
                sources_line(),
            ],
            cwd=Path("/"),
            env={"SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH},
        )
    with job.step("make the image"):
        root.mkdir()
        # The same modes for every user; device nodes come from the kernel.
        job.run(["tar", "--extract", "--file", str(archive), "--directory", str(root), "--no-same-owner", "--preserve-permissions", "--exclude=./dev/*"])
        archive.unlink()
        job.run(["mkfs.erofs", "--all-root", "-T0", "-x-1", "-U", UUID, "--quiet", str(job.target), str(root)])
        # Read-only folders of packages would keep a plain user from removing the tree.
        job.run(["chmod", "--recursive", "u+rwX", str(root)])
        shutil.rmtree(root)


def lines(file: Path) -> list[str]:
    """The lines of a list in a recipe: one item each, without comments."""
    return [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
