"""May a program trace another here? The lab kernel runs the guest's programs that way, and sandboxes forbid it."""

from __future__ import annotations

import re
from pathlib import Path

from scpslab.doctor.finding import Finding
from scpslab.doctor.surroundings import Surroundings, look
from scpslab.engine.appliance import native

NAME = "ptrace"
SCOPE_FILE = Path("/proc/sys/kernel/yama/ptrace_scope")
# From this scope on, children may not ask to be traced: 2 only root, 3 nobody until the next boot.
SCOPE_REFUSES, SCOPE_FOR_GOOD = 2, 3


def ptrace() -> Finding:
    """Tries it."""
    try:
        scope = int(SCOPE_FILE.read_text())
    except (OSError, ValueError):
        scope = 0
    filtered = re.search(r"^Seccomp:\s*2$", Path("/proc/self/status").read_text(), re.MULTILINE) is not None
    return explain(native.may_trace(), scope, filtered, look())


def explain(answer: int, scope: int, filtered: bool, where: Surroundings) -> Finding:
    """The finding for an answer (0, an error's number, or minus a signal's), with what probably refuses, and the way out."""
    if answer == 0:
        return Finding(NAME, "ok", "allowed")
    said = native.words(answer)
    if scope >= SCOPE_REFUSES:
        until = "write kernel.yama.ptrace_scope=1 into /etc/sysctl.d/10-ptrace.conf and boot again"
        fix = until if scope >= SCOPE_FOR_GOOD else "sudo sysctl -w kernel.yama.ptrace_scope=1"
        return Finding(NAME, "missing", f"refused ({said}): kernel.yama.ptrace_scope is {scope}", fix)
    if not filtered:
        return Finding(NAME, "missing", f"refused ({said})", "allow ptrace in the security module or sandbox that this program runs in")
    if where.run_command:
        fix = f"{where.run_command} --security-opt seccomp=unconfined, or a seccomp profile that allows ptrace"
    else:
        fix = "allow ptrace in the seccomp profile that this program runs with"
    return Finding(NAME, "missing", f"refused ({said}) by a seccomp filter", fix)
