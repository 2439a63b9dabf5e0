"""The lab kernel: Debian's Linux source, our configuration and patch, built as a program of the user (User-Mode Linux).

From the same source, the kernel of the appliance: a small x86-64 machine in which the lab kernel runs where it cannot
run by itself.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from scpslab.core.errors import CapabilityError
from scpslab.setup.job import Job
from scpslab.setup.recipes import appliance_source
from tools.build import source, versions

VERSION = "6.12"
FRAGMENT = "config.fragment"
PACKAGE = f"linux-source-{VERSION}"
# Otherwise the kernel contains the name and time of the building machine, and mixes them into its random numbers.
FIXED = {
    "KBUILD_BUILD_TIMESTAMP": "2024-01-01",
    "KBUILD_BUILD_USER": "scpslab",
    "KBUILD_BUILD_HOST": "lab",
    "KBUILD_BUILD_VERSION": "1",
}
# The kernel contains its configuration, and that has the versions of these, which nothing here uses, where the machine
# has them.
UNUSED_TOOLS = tuple(f"{tool}=none" for tool in ("RUSTC", "BINDGEN", "PAHOLE"))
# Half of the source is for other machines: leave out their folders, and the code (but not the Kconfig files) of
# drivers.
UNUSED_CODE = (
    *(
        "drivers/gpu",
        "drivers/iio",
        "drivers/infiniband",
        "drivers/media",
        "drivers/net/ethernet",
        "drivers/net/wireless",
        "drivers/scsi",
    ),
    *("drivers/staging", "drivers/usb", "sound", "tools/perf", "tools/testing"),
)
OTHER_ARCHITECTURES = (
    *(
        "alpha",
        "arc",
        "arm",
        "arm64",
        "csky",
        "hexagon",
        "loongarch",
        "m68k",
        "microblaze",
        "mips",
        "nios2",
        "openrisc",
    ),
    *("parisc", "powerpc", "riscv", "s390", "sh", "sparc", "xtensa"),
)


def build(job: Job) -> None:
    """Builds the kernel of the recipe folder (versions.txt, config.fragment, *.patch).

    Raises:
        CapabilityError: a tool is missing, a download failed, or the kernel did not accept an option of the fragment.
    """
    _build_lab_kernel(job, job.recipe, ())


def build_with_ipv6(job: Job) -> None:
    """The same with the options of the recipe folder besides, which take the place of the lab kernel's.

    Raises:
        CapabilityError: as `build`.
    """
    added = (job.recipe / FRAGMENT).read_text().splitlines()
    _build_lab_kernel(job, job.recipe.parent / "lab-kernel", added)


def _build_lab_kernel(job: Job, recipe: Path, added: Sequence[str]) -> None:
    instead = {_option(line)[0] for line in added}
    lines = [line for line in (recipe / FRAGMENT).read_text().splitlines() if _option(line)[0] not in instead - {""}]
    with _source(job, recipe / versions.FILE) as tree:
        with job.step("configure"):
            for patch in sorted(recipe.glob("*.patch")):
                job.run(["patch", "-p1", "--input", str(patch)], cwd=tree)
            (wanted := tree / FRAGMENT).write_text("\n".join([*lines, *added]) + "\n")
            shutil.copyfile(wanted, tree / ".config")
            job.run(["make", "ARCH=um", *UNUSED_TOOLS, "olddefconfig"], cwd=tree)
            check_options(wanted, tree / ".config")
        with job.step("compile"):
            _make(job, tree, "um", "linux")
            job.run(["strip", "--strip-debug", "-o", str(job.target), str(tree / "linux")])


def build_appliance(job: Job) -> None:
    """Builds the kernel of the recipe folder (config.fragment, init.c, initramfs.txt), with its first process inside,
    from the lab kernel's source.

    Raises:
        CapabilityError: as `build`.
    """
    with _source(job, appliance_source(job.recipe)) as tree:
        with job.step("configure"):
            # Everything that the fragment does not name is left out: this kernel drives one kind of machine.
            job.run(
                ["make", "ARCH=x86_64", *UNUSED_TOOLS, f"KCONFIG_ALLCONFIG={job.recipe / FRAGMENT}", "allnoconfig"],
                cwd=tree,
            )
            check_options(job.recipe / FRAGMENT, tree / ".config")
        with job.step("compile"):
            job.run(
                [
                    "gcc",
                    "-O2",
                    "-g0",
                    "-Wall",
                    "-Wextra",
                    "-static",
                    "-s",
                    "-o",
                    str(tree / "usr/appliance-init"),
                    str(job.recipe / "init.c"),
                ]
            )
            shutil.copyfile(job.recipe / "initramfs.txt", tree / "usr/appliance.txt")
            _make(job, tree, "x86_64", "bzImage")
            shutil.copyfile(tree / "arch/x86/boot/bzImage", job.target)


@contextmanager
def _source(job: Job, wanted: Path) -> Iterator[Path]:
    """The unpacked source that a file of versions names; removed at the end, unless the build failed and its whole
    folder is.
    """
    work = job.work / "source"
    work.mkdir()
    with job.step("download the source"):
        package = source.fetch(versions.read(wanted), work, job)
    with job.step("unpack the source"):
        tree = _unpack(package, work, job)
    yield tree
    shutil.rmtree(work)


def _make(job: Job, tree: Path, architecture: str, goal: str) -> None:
    job.run(
        ["make", f"ARCH={architecture}", *UNUSED_TOOLS, f"-j{len(os.sched_getaffinity(0))}", goal], cwd=tree, env=FIXED
    )


def _unpack(package: Path, work: Path, job: Job) -> Path:
    job.run(["dpkg-deb", "-x", str(package), str(work / "deb")])
    archive = work / "deb" / "usr" / "src" / f"{PACKAGE}.tar.xz"
    excluded = [f"--exclude={PACKAGE}/{folder}/*.[ch]" for folder in UNUSED_CODE]
    excluded += [f"--exclude={PACKAGE}/Documentation/*.{suffix}" for suffix in ("rst", "yaml", "txt", "svg")]
    excluded += [f"--exclude={PACKAGE}/arch/{name}/*.[chS]" for name in OTHER_ARCHITECTURES]
    excluded += [f"--exclude={PACKAGE}/arch/{name}/*.dts*" for name in OTHER_ARCHITECTURES]
    job.run(["tar", "--extract", "--file", str(archive), "--directory", str(work), *excluded], env={"XZ_OPT": "-T0"})
    archive.unlink()
    return work / PACKAGE


def check_options(fragment: Path, config: Path) -> None:
    """Checks that the configuration has every option of the fragment.

    Raises:
        CapabilityError: options differ; the message names all of them.
    """
    taken = dict(_option(line) for line in config.read_text().splitlines() if _option(line)[0])
    wanted = [_option(line) for line in fragment.read_text().splitlines() if _option(line)[0]]
    wrong = [f"{name}={value}" for name, value in wanted if taken.get(name, "n") != value]
    if wrong:
        raise CapabilityError(
            f"{fragment}: found that Linux {VERSION} did not accept {', '.join(wrong)}; "
            "expected every option to hold. Remove or correct these options."
        )


def _option(line: str) -> tuple[str, str]:
    """Name and value of a configuration line; the name is empty for anything else."""
    if line.startswith("# CONFIG_") and line.endswith(" is not set"):
        return line.split()[1], "n"
    name, equals, value = line.partition("=")
    return (name, value) if equals and name.startswith("CONFIG_") else ("", "")
