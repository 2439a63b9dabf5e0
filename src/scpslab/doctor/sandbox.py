"""The checks of the sandbox: does the lab kernel's lock hold here, and which protections does this machine's kernel add around it?"""

from __future__ import annotations

import tempfile
from pathlib import Path

from scpslab.core.errors import ScpslabError
from scpslab.core.installation import SETUP
from scpslab.doctor.finding import Finding
from scpslab.engine.confinement import protections
from scpslab.engine.virtual import VirtualEngine
from scpslab.setup import ensure
from scpslab.setup.images import PARTS, TOOLS, cache_dir, find

LIMITS = {"memory_mib": 256, "wall_s": 60}
# Run as root of a guest: a mount that no script may make.
TRY = """
import subprocess
tried = subprocess.run(["mount", "-t", "hostfs", "-o", "hostfs=../../..", "none", "/mnt"], capture_output=True)
open("/cell/out/found", "w").write("refused" if tried.returncode else "mounted")
"""


def lock() -> Finding:
    """Does a guest's kernel refuse folders of this machine?"""
    name = "sandbox: kernel's lock"
    if any(find(part, cache_dir()) is None for part in PARTS):
        return Finding(name, "missing", "kernel, guest image or programs not built", SETUP)
    with tempfile.TemporaryDirectory(prefix="scpslab-") as folder:
        lab, cell = Path(folder, "lab"), Path(folder, "cell")
        lab.mkdir()
        cell.mkdir()
        (lab / "run_lab.py").write_text(TRY)
        try:
            console = VirtualEngine().boot(ensure(lambda _: None), lab, cell, LIMITS)
        except (ScpslabError, OSError) as error:
            return Finding(name, "missing", str(error), SETUP)
        found = cell / "out" / "found"
        if not found.exists():
            return Finding(name, "missing", f"the guest gave no answer: {console}", "fix the check 'lab kernel starts' first")
        if found.read_text() != "refused":
            return Finding(name, "missing", "a guest's root can mount this machine's folders", f"scpslab clean --images, then {SETUP}")
    return Finding(name, "ok", "a guest's root cannot mount this machine's folders")


def confinement() -> Finding:
    """Which means does this machine's kernel have to confine the lab kernel?"""
    name = "sandbox: around it"
    tools = find(TOOLS, cache_dir())
    if tools is None:
        return Finding(name, "missing", "no launcher yet", SETUP)
    found = protections(tools)
    if found.landlock and found.seccomp:
        return Finding(name, "ok", f"Landlock {found.landlock} and seccomp")
    lacking = " and ".join(what for what, there in (("Landlock", found.landlock), ("seccomp", found.seccomp)) if not there)
    return Finding(name, "warning", f"no {lacking}; the kernel's lock holds alone", "use Linux 5.13 or newer, booted with landlock in lsm=…")


def addresses() -> Finding:
    """Does this machine start the lab kernel at the same addresses every time?"""
    name = "same memory in every guest"
    tools = find(TOOLS, cache_dir())
    if tools is None:
        return Finding(name, "missing", "no launcher yet", SETUP)
    if protections(tools).addresses:
        return Finding(name, "ok", "the lab kernel starts at the same addresses every time")
    help_ = "in a container, docker run --security-opt seccomp=unconfined, or a profile that allows personality(2)"
    return Finding(name, "warning", "personality(2) is refused: guests differ by up to 16 MiB of memory, and results may differ with it", help_)
