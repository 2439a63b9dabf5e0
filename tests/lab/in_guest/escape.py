"""Runs inside a guest as its root, with every capability: tries to get at the machine outside. /cell/job.json names
what is there to be had.

Each attempt returns what it got, or raises OSError. What they got is in /cell/out/attempts.json; whether the machine
has changed is for the test to see.
"""

import ctypes
import json
import os
import socket
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

JOB = json.loads(Path("/cell/job.json").read_text())
OUT = Path("/cell/out")
# In /run, which is memory: nothing of the machine's is there yet.
AT = Path("/run/outside")
UP = "../" * 12
LIBC = ctypes.CDLL(None, use_errno=True)
MS_REMOUNT = 32
O_PATH = 0o10000000


def mount(source: str, target: Path, kind: str, flags: int, options: str) -> None:
    """mount(2)."""
    target.mkdir(parents=True, exist_ok=True)
    if LIBC.mount(source.encode(), str(target).encode(), kind.encode(), flags, options.encode()):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def outside(name: str) -> Path:
    """A path of the machine, as hostfs with its root mounted shows it."""
    mount("none", AT, "hostfs", 0, UP)
    return Path(f"{AT}{name}")


def read_outside() -> str:
    return outside(JOB["secret"]).read_text()


def list_outside() -> str:
    return str(list(outside(str(Path(JOB["secret"]).parent)).iterdir()))


def write_outside() -> str:
    outside(JOB["target"]).write_text("written by the guest")
    return "written"


def change_outside() -> str:
    outside(JOB["secret"]).chmod(0o777)
    return "changed"


def date_outside() -> str:
    os.utime(outside(JOB["secret"]), (1, 1))
    return "changed"


def remove_outside() -> str:
    outside(JOB["secret"]).unlink()
    return "removed"


def link_outside() -> str:
    outside(JOB["target"]).symlink_to("/")
    return "linked"


def mount_with_new_interface() -> str:
    # fsopen, fsconfig and fsmount ask the file system by another way than mount(2) does.
    context = LIBC.syscall(430, b"hostfs", 0)
    for command, key, value in ((1, b"hostfs", UP.encode()), (6, None, None)):
        if LIBC.syscall(431, context, command, key, value, 0) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    mounted = LIBC.syscall(432, context, 0, 0)
    return Path(f"/proc/self/fd/{mounted}{JOB['secret']}").read_text()


def make_writable(folder: str, file: str) -> str:
    mount("none", Path(folder), "none", MS_REMOUNT, "")
    with Path(folder, file).open("a") as target:
        target.write("\n# changed by the guest\n")
    return "written"


def unseal() -> str:
    Path("/proc/sys/fs/hostfs_sealed").write_text("0\n")
    return "unsealed"


def reopen_removed_file() -> str:
    """A file held by name only, removed, and a link put in its place: hostfs used to open it again by its name."""
    (OUT / "held").write_text("mine")
    held = os.open(OUT / "held", O_PATH)
    (OUT / "held").unlink()
    (OUT / "held").symlink_to(JOB["secret"])
    return Path(f"/proc/self/fd/{held}").read_text()


def leave(kind: Callable[[Path], None]) -> Callable[[], str]:
    """Leaves something in the folder that whoever runs the lab will look into."""

    def attempt() -> str:
        kind(OUT / f"left-{kind.__name__}")
        return "left"

    attempt.__name__ = f"leave_{kind.__name__}"
    return attempt


def symlink(path: Path) -> None:
    path.symlink_to(JOB["secret"])


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    os.mknod(path, stat.S_IFBLK | 0o666, os.makedev(8, 0))


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))


def hard_link(path: Path) -> None:
    (OUT / "first").write_text("mine")
    path.hardlink_to(OUT / "first")


def set_user_id() -> str:
    (OUT / "set-user-id").write_text("#!/bin/sh\n")
    (OUT / "set-user-id").chmod(0o6755)
    # This kernel may believe that it did; what the machine has got is for the test to see.
    raise OSError("left to the test")


def reach_through_init() -> str:
    return Path("/proc/1", "root", UP + JOB["secret"].lstrip("/")).read_text()


def climb() -> str:
    return (OUT / (UP + JOB["secret"])).read_text()


def read_device(name: str) -> str:
    with Path(name).open("rb") as device_file:
        return f"{len(device_file.read(16))} bytes"


def ask_for_a_snapshot(text: str) -> str:
    """A guest stops for its forks once.

    One that has not may do it, and gains nothing: so what counts is the second time.
    """
    entry = os.open("/proc/lab_snapshot", os.O_WRONLY)
    try:
        os.write(entry, text.encode())
    except OSError:
        pass
    return f"{os.write(entry, text.encode())} bytes"


def load_kernel_code() -> str:
    if LIBC.syscall(175, b"", 0, b"") and ctypes.get_errno():
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "loaded"


def mount_a_disk() -> str:
    mount(JOB["secret"], Path("/run/disk"), "ext4", 0, "")
    return "mounted"


def open_namespace_of_user() -> str:
    subprocess.run(["unshare", "--user", "--map-root-user", "true"], check=True, capture_output=True)
    return "made"


def reach_network() -> str:
    with socket.create_connection(("127.0.0.1", JOB["port"]), timeout=2) as connection:
        return connection.recv(64).decode()


ATTEMPTS: list[tuple[str, Callable[[], str]]] = [
    *(
        (attempt.__name__, attempt)
        for attempt in (
            *(read_outside, list_outside, write_outside, change_outside, date_outside, remove_outside, link_outside),
            *(mount_with_new_interface, unseal, reopen_removed_file, reach_through_init, climb, set_user_id),
        )
    ),
    ("lab_program_made_writable", lambda: make_writable("/opt/scpslab", "run_lab.py")),
    ("input_made_writable", lambda: make_writable("/cell", "lent.txt")),
    *((leave(kind).__name__, leave(kind)) for kind in (symlink, pipe, device, unix_socket, hard_link)),
    *(
        (f"read_{name}", lambda name=name: read_device(name))
        for name in ("/dev/mem", "/dev/kmem", "/dev/port", "/proc/kcore", "/proc/mconsole")
    ),  # type: ignore[misc]
    *(
        (f"snapshot_{text[:9]!r}", lambda text=text: ask_for_a_snapshot(text))
        for text in ("1", "run -1 /", "end 1", "\0" * 70000)
    ),  # type: ignore[misc]
    *(
        (attempt.__name__, attempt)
        for attempt in (load_kernel_code, mount_a_disk, open_namespace_of_user, reach_network)
    ),
]


def main() -> None:
    """Tries everything, whatever comes of it."""
    results = {}
    for name, attempt in ATTEMPTS:
        try:
            results[name] = {"got": attempt()}
        except (OSError, subprocess.CalledProcessError) as error:
            results[name] = {"refused": str(error)}
        subprocess.run(["umount", "-l", str(AT)], check=False, capture_output=True)
    (OUT / "attempts.json").write_text(json.dumps(results, indent=1) + "\n")


main()
