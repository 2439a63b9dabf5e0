"""The file by which an administrator shares a machine among users (docs/scale.md): /etc/scpslab/server.yaml, or the one that SCPSLAB_SERVER names."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from scpslab.documents import Form, Part, key, load
from scpslab.documents.quantities import Size
from scpslab.errors import CapabilityError

FORM = Form("a server", "kind, version, cache, turns, cells_per_user", "docs/scale.md")
PLACE = Path("/etc/scpslab/server.yaml")
NAMED, SYSTEM_CACHE = "SCPSLAB_SERVER", "SCPSLAB_SYSTEM_CACHE"
Absolute = Annotated[str, Field(pattern=r"^/[^\x00-\x1f]*$")]
LIMITS = ("cells", "memory", "cells_per_user", "memory_per_user")


class ServerFile(Part):
    """What the users of a machine share."""

    kind: Literal["server"]
    version: Literal[1]
    cache: Absolute | None = key(None, says="The folder of built parts and results that everybody reads.", example="/srv/scpslab")
    turns: Absolute | None = key(None, says="The folder in which users take turns, on a disk of this machine.", example="/var/lib/scpslab/turns")
    cells: int | None = key(None, says="Cells that run at a time, of all users. Default: one per core.", least=1, most=10_000)
    memory: Size | None = key(None, says="Memory of the guests of all users. Default: no limit.", example="64 GB")
    cells_per_user: int | None = key(None, says="Cells of one user at a time. Default: no limit.", least=1, most=10_000)
    memory_per_user: Size | None = key(None, says="Memory of the guests of one user. Default: no limit.", example="8 GB")


def load_server(path: Path) -> ServerFile:
    """The server of a file.

    Raises:
        ScenarioError: everything that is wrong with the file.
    """
    file, places = load(path, FORM, ServerFile)
    if file.turns is None and (given := [name for name in LIMITS if getattr(file, name) is not None]):
        raise places.error([((given[0],), f"found {given[0]} without turns; expected the folder in which users take turns. Add turns")])
    return file


def server_file() -> Path | None:
    """The file of this machine; None if it has none, or if SCPSLAB_SERVER is empty.

    Raises:
        CapabilityError: SCPSLAB_SERVER names a file that is not there.
    """
    named = os.environ.get(NAMED)
    if named is None:
        return PLACE if PLACE.is_file() else None
    if named and not Path(named).is_file():
        raise CapabilityError(f"{NAMED}: found no file {named}; expected the file of a shared machine. Correct the path, or unset {NAMED}.")
    return Path(named).absolute() if named else None


@lru_cache(maxsize=8)
def _loaded(path: Path, changed_ns: int) -> ServerFile:  # a file that was changed is read again
    return load_server(path)


def this_server() -> tuple[Path, ServerFile] | None:
    """The file of this machine and its content; None if it has none.

    Raises:
        CapabilityError, ScenarioError: see `server_file` and `load_server`.
    """
    path = server_file()
    return (path, _loaded(path, path.stat().st_mtime_ns)) if path else None


def system_cache() -> Path | None:
    """The folder of built parts and results that is only read: that of SCPSLAB_SYSTEM_CACHE, or of the machine's file; None if there is none.

    Raises:
        CapabilityError, ScenarioError: the folder is not there, or see `this_server`.
    """
    named, origin = os.environ.get(SYSTEM_CACHE), SYSTEM_CACHE
    if named is None and (server := this_server()) and server[1].cache:
        named, origin = server[1].cache, f"{server[0]}: cache"
    if not named:
        return None
    folder = Path(named).absolute()
    if not folder.is_dir():
        advice = f"Correct it, or unset {SYSTEM_CACHE}" if origin == SYSTEM_CACHE else f"Tell the administrator, or set {SYSTEM_CACHE} to nothing"
        raise CapabilityError(f"{origin}: found no folder {folder}; expected one with built parts and results. {advice}.")
    return folder
