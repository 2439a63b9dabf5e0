"""Whose a run is: its manifest names the folder of the scenario, from which recipes and claims are read after the run.
A stranger's manifest would choose which folder of this machine is read, so the manifest has a seal beside it: a code
for both folders (HMAC, RFC 2104) under a key in the user's cache, which only a run of this user can have written.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from contextlib import suppress
from pathlib import Path

from scpslab.core.errors import CapabilityError
from scpslab.setup import cache_dir

KEY, KEY_BYTES = "origin.key", 32


def seal(run: Path, folder: Path) -> str | None:
    """The seal of a run in `run`, whose scenario lies in `folder`; None where the cache cannot be written."""
    key = _key(is_made=True)
    return None if key is None else _code(key, run, folder)


def is_sealed(run: Path, folder: Path, found: str | None) -> bool:
    """Whether a run of this user in `run` had its scenario in `folder`. A run folder that was moved has lost that."""
    key = _key(is_made=False)
    return found is not None and key is not None and hmac.compare_digest(_code(key, run, folder), found)


def _code(key: bytes, run: Path, folder: Path) -> str:
    places = b"\0".join(os.fsencode(place.resolve()) for place in (run, folder))
    return hmac.new(key, places, hashlib.sha256).hexdigest()


def _key(*, is_made: bool) -> bytes | None:
    try:
        path = cache_dir() / KEY
        if is_made:
            path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(os.urandom(KEY_BYTES))
        content = path.read_bytes()
    except (OSError, CapabilityError):
        return None
    # One that another process is writing at this moment.
    return content if len(content) == KEY_BYTES else None
