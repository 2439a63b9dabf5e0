"""Packs the built parts for a wheel: a maintainer's work (`make wheel`)."""

import hashlib
import json
import lzma
import shutil
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

from scpslab.core import archive
from scpslab.core.errors import CapabilityError
from scpslab.core.folders import whole_folder
from scpslab.core.installation import commit
from scpslab.core.scratch import replace_text
from scpslab.setup import Say
from scpslab.setup.images import (
    APPLIANCE,
    CARRIED,
    MADE,
    Built,
    cache_dir,
    ensure,
    ensure_appliance,
    ensure_stack,
    find,
    link_or_copy,
    made,
    place,
)
from scpslab.setup.packed import FORMAT, INDEX, Packed
from tools.build import notices

# Beside the parts in the cache: the archives, because packing takes minutes.
FOLDER = "packed"
SUFFIX = ".tar.xz"
PRESET = 9
APPLIANCE_TIME = "building it takes 10 to 30 minutes on two cores"


def pack(folder: Path, say: Say, *, with_appliance: bool = True) -> None:
    """Builds the parts that a wheel carries, and packs them into `folder`, which is emptied.

    `with_appliance`: also the kernel with which cells run on arm64, and where ptrace is forbidden.

    Raises:
        CapabilityError: as `ensure`.
    """
    if with_appliance and find(APPLIANCE, cache_dir()) is None:
        say(
            f"{APPLIANCE.title}: not built yet; {APPLIANCE_TIME}, once. Machines of x86-64 that allow ptrace do "
            "without it: make wheel APPLIANCE=no"
        )
    ensure(say)
    ensure_stack(say)
    if with_appliance:
        ensure_appliance(say)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    parts = [_pack(part, folder, say) for part in CARRIED if with_appliance or part is not APPLIANCE]
    found = commit()
    # For which commit of the program they are, `scpslab.core.installation` reads.
    program = {"commit": found.id if found else None, "changed": found.changed if found else None}
    rows = [asdict(part) for part in sorted(parts, key=lambda part: part.name)]
    replace_text(folder / INDEX, json.dumps({"format": FORMAT, "program": program, "parts": rows}, indent=1) + "\n")
    say(f"{folder}: {sum((folder / part.archive).stat().st_size for part in parts) / 1e6:.1f} MB")


def _pack(part: Built, folder: Path, say: Say) -> Packed:
    """Packs one part: its product, the notices of copyright, and the note of what it was made with."""
    cache = cache_dir()
    base = place(part, cache)
    product = base / part.product
    files = [
        *(sorted(product.iterdir()) if product.is_dir() else [product]),
        base / MADE,
        *sorted(base.glob(notices.FILE)),
    ]
    entry, _ = made(part, cache) or _no_note(base)
    size = sum(file.stat().st_size for file in files)
    described = Packed(part.name, entry.recipe, entry.sha256, size, f"{part.name}{SUFFIX}")
    content = hashlib.sha256(f"{entry.sha256} {(base / MADE).read_text()}".encode()).hexdigest()[:24]

    def fill(work: Path) -> None:
        say(f"{part.title}: packing, once")
        _write(described, files, base, work)

    packed = whole_folder(cache / FOLDER / f"{part.name}-{content}", fill) / described.archive
    link_or_copy(packed, folder / described.archive)
    say(f"{part.title}: {size / 1e6:.1f} MB, packed {packed.stat().st_size / 1e6:.1f} MB")
    return described


def _write(part: Packed, files: Iterable[Path], base: Path, folder: Path) -> None:
    """Packs files, under their names relative to `base`, to the part's archive in `folder`."""
    with lzma.open(folder / part.archive, "wb", preset=PRESET) as file:
        archive.pack(file, [(str(one.relative_to(base)), one) for one in sorted(files)])


def _no_note(folder: Path) -> NoReturn:
    raise CapabilityError(
        f"{folder}: found no {MADE}; expected a part that this scpslab has built. Run: "
        "scpslab clean --images, then the same command again."
    )
