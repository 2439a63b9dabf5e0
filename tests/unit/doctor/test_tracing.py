"""What doctor says where ptrace is refused by settings that a test cannot make."""

import errno
import signal

from scpslab.engine.findings import Surroundings, explain

BARE = Surroundings("Debian")
DOCKER = Surroundings("Debian", "docker")


def test_the_way_out_fits_what_refuses():
    assert explain(0, 0, True, DOCKER).state == "ok"
    assert explain(errno.EPERM, 0, True, DOCKER).fix.startswith("docker run --security-opt seccomp=unconfined")
    assert explain(-signal.SIGSYS, 0, True, Surroundings("Debian", "podman")).fix.startswith(
        "podman run --security-opt"
    )
    assert "docker" not in explain(errno.EPERM, 0, True, BARE).fix
    assert "security module" in explain(errno.EPERM, 0, False, BARE).fix


def test_yamas_scope_is_named_with_the_command_that_changes_it():
    found = explain(errno.EPERM, 2, False, BARE)
    assert (found.found, found.fix) == (
        "refused (Operation not permitted): kernel.yama.ptrace_scope is 2",
        "sudo sysctl -w kernel.yama.ptrace_scope=1",
    )
    # 3 holds until the next boot, whatever root writes.
    assert "boot again" in explain(errno.EPERM, 3, True, DOCKER).fix
