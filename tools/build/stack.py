"""The `scps` program (stack/): compiled by the machine's cargo if it is new enough, else by Debian 13's cargo in a root
file system of its own.
"""

import json
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from scpslab.setup.apt import SUITE, sources_line
from scpslab.setup.job import Job
from tools.build import notices
from tools.build.guest import root_of_debian

LEAST_CARGO = (1, 85)
# Static, so that it runs in any guest image, whatever its C library.
TARGET = f"{platform.machine()}-unknown-linux-gnu"
RUSTFLAGS = "-C target-feature=+crt-static -C strip=symbols"
# Messages about a panic name the files of libraries, which are in a folder of the user.
NAMED = "/cargo"
BUILD = ["cargo", "build", "--release", "--locked", "--bin", "scps", "--target", TARGET]
# Besides what it says to people: which libraries it compiled.
MESSAGES = ["--message-format", "json-render-diagnostics"]
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
BUILDER_PACKAGES = ("ca-certificates", "cargo", "gcc", "libc6-dev", "rustc")


def cargo_version() -> tuple[int, ...] | None:
    """The version of the cargo on the path; None when there is none that works."""
    try:
        said = subprocess.run(["cargo", "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return None
    found = re.match(r"cargo (\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else None


def build(job: Job) -> None:
    """Compiles the program of the recipe folder to the target.

    Raises:
        CapabilityError: there is no compiler, or the compilation failed.
    """
    folder = job.work / "target"
    version = cargo_version()
    if version is not None and version >= LEAST_CARGO:
        with job.step("compile"):
            home = os.environ.get("CARGO_HOME") or Path.home() / ".cargo"
            said = job.output(
                [*BUILD, *MESSAGES, "--target-dir", str(folder)], cwd=job.recipe, env={"RUSTFLAGS": _flags(home)}
            )
        (folder / TARGET / "release" / "scps").rename(job.target)
        shutil.rmtree(folder)
        (job.work / notices.FILE).write_text(notices.of_crates(libraries(said)))
    else:
        with job.step(f"compile in a root file system with Debian's cargo (here: {_named(version)})"):
            _build_in_debian(job)


def libraries(said: str) -> list[tuple[str, Path]]:
    """Names with versions, and source folders, of the libraries that cargo compiled, from its messages in JSON (The
    Cargo Book, "External tools").
    """
    messages = (json.loads(line) for line in said.splitlines() if line.startswith('{"reason":"compiler-artifact"'))
    folders = {
        Path(message["manifest_path"]).parent for message in messages if message["package_id"].startswith("registry+")
    }
    return [(folder.name, folder) for folder in folders]


def _flags(cargo_home: Path | str) -> str:
    return f"{RUSTFLAGS} --remap-path-prefix={cargo_home}={NAMED}"


def _named(version: tuple[int, ...] | None) -> str:
    return "none" if version is None else ".".join(map(str, version))


def _build_in_debian(job: Job) -> None:
    """Unpacks Debian 13 with cargo, compiles the program inside and copies it out; the root file system is removed
    again.
    """
    archive = job.work / "stack.tar"
    job.run(["tar", "--create", "--file", str(archive), "--exclude=./target", "--directory", str(job.recipe), "."])
    compile_it = (
        "mkdir /src && cd /src && tar --extract --file /stack.tar && HOME=/home "
        f"RUSTFLAGS='{_flags('/home/.cargo')}' {' '.join(BUILD)}"
    )
    hooks = [
        f"upload {archive} /stack.tar",
        "upload /etc/resolv.conf /etc/resolv.conf",
        # A site that inspects encrypted traffic has a certificate of its own.
        f"upload {CERTIFICATES} {CERTIFICATES}",
        f'chroot "$1" sh -c "{compile_it}"',
        f"download /src/target/{TARGET}/release/scps {job.target}",
    ]
    options = [*(f"--customize-hook={hook}" for hook in hooks), "--format=null", SUITE, "-", sources_line()]
    root_of_debian(job, BUILDER_PACKAGES, options, {})
    job.target.chmod(0o755)
    archive.unlink()
