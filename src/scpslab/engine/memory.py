"""The memory that guests can have, and the folder of their memory files: /dev/shm, which is in memory; another where it
is too small, or mounted so that no kernel can run from it.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from scpslab.core.errors import CapabilityError
from scpslab.core.scratch import memory_places
from scpslab.plan import Plan

# A guest of the default size that uses all of it.
NEEDED_BYTES = 700 * 10**6
CONTROL_GROUPS, OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def choose(places: tuple[Path, ...] | None = None) -> Path:
    """The first of the places that can be used and has room for a guest; where none has, the one with the most room.

    Raises:
        CapabilityError: none can be used.
    """
    asked = memory_places() if places is None else places
    usable = [place for place in asked if not trouble(place)]
    if not usable:
        found = ", ".join(f"{place} {trouble(place)}" for place in asked)
        raise CapabilityError(
            f"the guests' memory: found {found}; expected a folder from which the lab kernel can run. "
            'Run "scpslab doctor": it shows how to mount it, or how to start a container that has it; '
            "or set SCPSLAB_MEMORY to a folder."
        )
    return next((place for place in usable if room(place) >= NEEDED_BYTES), max(usable, key=room))


def check_guests(plans: Iterable[Plan]) -> None:
    """Whether the largest guest of these plans fits in this machine.

    Raises:
        CapabilityError: it has more memory than the machine.
    """
    needed_mib = max((plan.network.memory_mib for plan in plans), default=0)
    machine_mib = machine_bytes() >> 20
    if needed_mib > machine_mib:
        found = (
            f"limits.memory: found a guest of {needed_mib} MiB; expected at most the {machine_mib} MiB of this machine"
        )
        raise CapabilityError(f"{found}. Lower it, or run the scenario on a larger machine.")


def machine_bytes() -> int:
    """The memory of the machine, or what a container or another control group may have of it."""
    return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *(limit for limit, _ in of_groups())])


def free_bytes(folder: Path) -> int:
    """What programs can still have of the memory, where their files are in a folder in memory."""
    fields = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    of_machine = (int(words[1]) * 1024 for words in fields if words[0] == "MemAvailable:")
    return min([room(folder), *of_machine, *(limit - used for limit, used in of_groups())])


def of_groups(mount: Path = CONTROL_GROUPS, own: Path = OWN_GROUPS) -> Iterator[tuple[int, int]]:
    """The limits of this process's control groups, and what is used there besides the files' cache, which makes room
    for others. Of version 2: cgroups(7). In a container the group may be the top of the mount.
    """
    # A kernel may have no control groups.
    for line in own.read_text().splitlines() if own.exists() else ():
        names = Path(line.removeprefix("0::")).parts if line.startswith("0::") else ()
        for folder in (mount.joinpath(*names[1:depth]) for depth in range(len(names), 0, -1)):
            # A group without a limit says so in words, and the top says nothing.
            with suppress(OSError, ValueError):
                limit, used = (int((folder / f"memory.{name}").read_text()) for name in ("max", "current"))
                said = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                yield limit, used - sum(int(said[f"{which}_file"]) for which in ("active", "inactive"))


def trouble(place: Path) -> str:
    """Why a place cannot be used; "" if it can."""
    if not place.is_dir():
        return "missing"
    if not os.access(place, os.W_OK | os.X_OK):
        return "not writable"
    return "mounted noexec" if os.statvfs(place).f_flag & os.ST_NOEXEC else ""


def can_hold_forks(place: Path) -> bool:
    """Whether a place has files without a name, in which a fork keeps its memory: overlay file systems, as containers
    have them, often have none.
    """
    try:
        os.close(os.open(place, os.O_TMPFILE | os.O_RDWR, 0o600))
    except OSError:
        return False
    return True


def room(place: Path) -> int:
    """The free bytes of a place."""
    return shutil.disk_usage(place).free
