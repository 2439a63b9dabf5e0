"""Being in another network namespace for a moment: sockets opened there stay there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_HERE = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


@contextmanager
def inside(pid: int | None) -> Iterator[None]:
    """Runs the block in the network namespace of process `pid` (None: this one). Not for code that yields to other threads."""
    if pid is None:
        yield
        return
    there = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.setns(there, os.CLONE_NEWNET)
        yield
    finally:
        os.setns(_HERE, os.CLONE_NEWNET)
        os.close(there)


def from_anywhere() -> None:
    """Lets packets in by whatever interface they come: a path may have other links each way. A namespace begins with the machine's own choice (RFC 3704)."""
    for which in ("all", "default"):
        setting = Path(f"/proc/sys/net/ipv4/conf/{which}/rp_filter")
        if setting.read_text().strip() != "0":
            setting.write_text("0\n")


def without_ipv6() -> None:
    """Switches IPv6 off in the namespace we are in, for what is there and what comes: its own packets would be in the links' accounts."""
    for which in ("all", "default"):
        setting = Path(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6")
        if setting.exists():
            setting.write_text("1\n")
