"""The appliance: a small x86-64 machine under qemu-system-x86_64, in which engine `virtual` runs its cells where the
lab kernel cannot run by itself: it is a program for x86-64 Linux that traces the guest's programs.

Order of reading: here (when), machine.py (one machine, and those of a run), inside.py (the program in it).
"""

import os
import platform
import signal
import subprocess
import sys

from scpslab.setup.images import LAB_KERNEL_MACHINE

# 1: use the appliance although the lab kernel could run here; tcg: that, and without KVM, which does not work
# everywhere where it can be opened.
VARIABLE = "SCPSLAB_APPLIANCE"
FORCED, EMULATED = "1", "tcg"
# Asks to be traced by its parent, in a process of its own: some filters kill whoever asks. Answers with the number of
# the error.
TRY = (
    "import ctypes, sys; libc = ctypes.CDLL(None, use_errno=True); sys.exit(ctypes.get_errno() if libc.ptrace(0, 0, "
    "None, None) else 0)"
)


def machine_trouble() -> str:
    """Why no lab kernel can run on a machine of this kind; "" if it can."""
    kind = (platform.system(), platform.machine())
    if kind == ("Linux", LAB_KERNEL_MACHINE):
        return ""
    return f"this is a machine of type {' '.join(kind)}, and the lab kernel is a program for x86-64 Linux"


def trouble() -> str:
    """Why the cells of engine `virtual` need the appliance here; "" if they do not."""
    if (asked := os.environ.get(VARIABLE)) in (FORCED, EMULATED):
        return f"{VARIABLE}={asked} asks for it"
    if said := machine_trouble():
        return said
    answer = may_trace()
    return f"ptrace is refused ({words(answer)})" if answer else ""


def may_trace() -> int:
    """Tries ptrace: 0, an error's number, or minus a signal's."""
    return subprocess.run([sys.executable, "-I", "-S", "-c", TRY], capture_output=True, check=False).returncode


def words(answer: int) -> str:
    """An answer other than 0, in words."""
    return f"killed by {signal.Signals(-answer).name}" if answer < 0 else os.strerror(answer)
