"""Templates of the user's keeper (keeper.py), as a command has them. This module says how the two find each other and
what they say.

A connection is one cell. Messages are JSON, one a packet:

    keeper    {"hello": true}
    command   {"guest": …, "template": PATH, "core": CORE, "limit_s": S}
    keeper    {"folder": PATH, "bytes": BYTES, "pid": PID, "returncode": CODE}
    command   {"run": PATH}
    keeper    {"running": PID} or {"refused": TEXT, "alive": true or false}
    command   {"end": true}: the cell; the template, if it has not come up
    keeper    {"ended": CODE, "lost": true or false}

The end of a connection ends what runs for it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from scpslab.core.digests import digest_of
from scpslab.core.project import PACKAGE
from scpslab.core.scratch import memory_places, private_folder
from scpslab.engine.template import ANSWER_LIMIT_S, END_LIMIT_S, Fork, TemplateError
from scpslab.engine.uml import Guest
from scpslab.lab.template import FILE

# Seconds that a keeper without cells lives; with 0 there is none.
SETTING, KEEP_S = "SCPSLAB_KEEP_TEMPLATES", "600"
START_LIMIT_S, HELLO_LIMIT_S, LOOK_S = 10.0, 5.0, 0.02
LONGEST = 1 << 16
# poll(2) waits no longer.
MOST_MS = (1 << 31) - 1
# The keeper is nobody's child: no command waits for it, or must know of its end.
PROGRAM = "import os; os.fork() and os._exit(0); from scpslab.engine.keeper import main; main()"


def keep_s() -> float:
    """How long a keeper without cells lives."""
    with suppress(ValueError):
        return float(os.environ.get(SETTING) or KEEP_S)
    return 0.0


def name() -> str:
    """The name of the socket of a keeper that does what this process would: of the same program, rights and limits."""
    parts = (file for part in ("core", "engine") for file in sorted((PACKAGE / part).rglob("*.py")))
    code = digest_of((file, str(file.relative_to(PACKAGE))) for file in parts)
    mask = Path("/proc/self/status").read_text().partition("Umask:")[2].split()[0]
    facts = [
        *(code, sys.executable, os.geteuid(), os.getegid(), mask, os.nice(0), sorted(os.sched_getaffinity(0))),
        *(keep_s(), tempfile.gettempdir(), *map(str, memory_places())),
        *(str(Path("/proc/self/ns", space).readlink()) for space in ("mnt", "pid", "user")),
        *(Path("/proc", file).read_text() for file in ("self/limits", "self/cgroup", "sys/kernel/random/boot_id")),
    ]
    return f"keeper-{hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]}"


class Link:
    """A connection, of either side. Whoever takes part is the same user."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    @classmethod
    def to(cls, path: Path) -> Link | None:
        """A connection to a keeper; None where there is none that answers."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        link = cls(connection)
        with suppress(OSError), opened(path.parent) as folder:
            connection.settimeout(HELLO_LIMIT_S)
            connection.connect(address(folder, path.name))
            if link.is_of_user() and link.receive(HELLO_LIMIT_S):
                return link
        link.close()
        return None

    def is_of_user(self) -> bool:
        """Whether a process of the same user is at the other end, as the system says, and one that can be seen here."""
        found = self._connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid, uid, _ = struct.unpack("3i", found)
        return bool(pid) and uid == os.geteuid()

    def send(self, message: dict[str, Any]) -> None:
        """Says something; to one who has gone, or who does not read, it means nothing."""
        with suppress(OSError):
            self._connection.send(json.dumps(message).encode(), socket.MSG_DONTWAIT)

    def receive(self, limit_s: float | None) -> dict[str, Any]:
        """What is said next; nothing when there is nobody, when it is no message, or until the limit."""
        with suppress(OSError, ValueError):
            look = select.poll()
            look.register(self._connection, select.POLLIN)
            if look.poll(None if limit_s is None else min(limit_s * 1000, MOST_MS)):
                message = json.loads(self._connection.recv(LONGEST, socket.MSG_DONTWAIT))
                return message if isinstance(message, dict) else {}
        return {}

    def hang_up(self) -> None:
        """Ends the connection for both, from another thread than the one that listens."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Gives back what it has."""
        self._connection.close()


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    """The descriptor of a folder that is the user's alone.

    Raises:
        OSError: it is not.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise PermissionError(str(folder))
        yield descriptor
    finally:
        os.close(descriptor)


def address(folder: int, name: str) -> str:
    """The address of a socket in an open folder: its path may be too long for one."""
    return f"/proc/self/fd/{folder}/{name}"


class KeptTemplate:
    """A template of the keeper's, for one cell; see template.TemplateGuest."""

    def __init__(self, link: Link, said: dict[str, Any]) -> None:
        self._link = link
        self.folder = Path(said["folder"])
        self.pid: int = said["pid"]
        self.memory_bytes: int | None = said["bytes"]
        self.returncode: int | None = said["returncode"]
        self.is_alive = self.returncode is None
        self._descriptor: int | None = None

    def fork(self, folder: Path, _core: int | None) -> Fork:
        """A child that works in a folder.

        Raises:
            TemplateError: it could not, or the template has ended.
        """
        self._link.send({"run": str(folder)})
        said = self._link.receive(ANSWER_LIMIT_S + 2 * END_LIMIT_S)
        if "running" not in said:
            self.is_alive = said.get("alive", False)
            raise TemplateError(said.get("refused", "the process that keeps templates ended, or does not answer"))
        fork = Fork(self, said["running"])
        with suppress(ProcessLookupError):
            self._descriptor = os.pidfd_open(fork.pid)
        threading.Thread(target=self._hear, args=(fork,), daemon=True).start()
        return fork

    def _hear(self, fork: Fork) -> None:
        """Until the keeper says how a fork has ended, or has gone."""
        said = self._link.receive(None)
        if said.get("lost", True):
            fork.lose()
        else:
            fork.ended(said["ended"])

    def ask(self, _text: str) -> None:
        """Asks the keeper to end the fork."""
        self._link.send({"end": True})

    def kill(self) -> None:
        """Ends the fork, where the keeper does not."""
        if self._descriptor is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
        self._link.hang_up()

    def close(self) -> None:
        """Ends it, and returns when it has ended."""
        self._link.send({"end": True})
        self._link.receive(2 * END_LIMIT_S)

    def forget(self) -> None:
        """Gives back what it has here."""
        self._link.close()
        if self._descriptor is not None:
            os.close(self._descriptor)


class Keepers:
    """The user's keeper, as a command finds or starts it. `place`: the folder for templates."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._links: set[Link] = set()
        self._lock = threading.Lock()
        self._silent: set[Path] = set()
        # Where there was none once, nobody waits for one again.
        self._is_wanted = keep_s() > 0

    @cached_property
    def _name(self) -> str:
        return name()

    def ask(self, guest: Guest, text: str, folder: Path, core: int | None, limit_s: float) -> KeptTemplate | None:
        """The keeper's template for the cell of a folder, booted within a limit where there is none yet; None where
        there is no keeper.

        `text`: what it is of (lab/template.FILE).
        """
        link = None
        with suppress(OSError, subprocess.SubprocessError):
            link = self._connected() if self._is_wanted else None
        if link is None:
            self._is_wanted = False
            return None
        with self._lock:
            self._links.add(link)
        if not self._is_wanted:
            link.hang_up()
        file = folder / FILE
        file.write_text(text)
        made_of = {name: str(value) if isinstance(value, Path) else value for name, value in vars(guest).items()}
        link.send({"guest": made_of, "template": str(file.resolve()), "core": core, "limit_s": limit_s})
        said = link.receive(limit_s + ANSWER_LIMIT_S)
        file.unlink()
        with self._lock:
            self._links.discard(link)
        if "folder" in said:
            return KeptTemplate(link, said)
        link.close()
        return None

    def stop(self) -> None:
        """Nobody waits for a template any more."""
        self._is_wanted = False
        with self._lock:
            for link in self._links:
                link.hang_up()

    def _connected(self) -> Link | None:
        """A connection, to one that is started where there is none: one command at a time does so."""
        if link := self._found():
            return link
        limit = time.monotonic() + START_LIMIT_S
        with opened(private_folder(self._place)) as folder:
            while not _locked(folder):
                if time.monotonic() > limit:
                    return None
                time.sleep(LOOK_S)
            if link := self._found():
                return link
            self._start()
            while not (link := self._found()) and time.monotonic() < limit:
                time.sleep(LOOK_S)
        return link

    def _found(self) -> Link | None:
        for path in sockets(self._place, self._name):
            began = time.monotonic()
            if path not in self._silent and (link := Link.to(path)):
                return link
            # One that refuses is dead, or not there yet, and costs no time.
            if time.monotonic() - began >= HELLO_LIMIT_S:
                self._silent.add(path)
        return None

    def _start(self) -> None:
        quiet = subprocess.DEVNULL
        subprocess.run(
            [sys.executable, "-c", PROGRAM, str(self._place), self._name],
            check=True,
            timeout=START_LIMIT_S,
            start_new_session=True,
            cwd="/",
            env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
        )


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def sockets(place: Path, named: str = "keeper-*") -> list[Path]:
    """The sockets of keepers, also of those that were killed."""
    return sorted(place.glob(f"scpslab-*/{named}"))


def end_keepers(place: Path) -> int:
    """Ends all keepers of a folder; returns their number."""
    ended = 0
    for path in sockets(place):
        if link := Link.to(path):
            link.send({"stop": True})
            # It says nothing more, and hangs up with its end.
            link.receive(2 * END_LIMIT_S)
            link.close()
            ended += 1
    return ended
