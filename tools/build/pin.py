"""Writes the files of exact versions and of published hashes: a maintainer's work (`make pin`, `make published`)."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path

from scpslab.core.scratch import replace_text, scratch
from scpslab.setup import Say, published
from scpslab.setup.apt import Apt, Place, mirror, sources_line
from scpslab.setup.images import CARRIED, GUEST, KERNEL, PROJECT, PUBLISHED, Built, cache_dir, made
from scpslab.setup.job import Job
from tools.build import guest, kernel, versions
from tools.build.versions import Package, Versions

PUBLISHED_COMMENT = (
    "# The SHA-256 of the parts that results were published with, and what they were made with; "
    "written by make published (docs/decisions/0021)."
)
COMMENT = "written by make pin; docs/decisions/0021-versions-and-hashes-in-the-recipes.md says how it is used."


def pin(say: Say) -> None:
    """Writes the versions that the mirror has today into the recipes.

    It installs a guest, because only that says which packages one has.
    """
    with scratch() as folder:
        _pin(folder, say)


def _pin(folder: Path, say: Say) -> None:
    date = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    place = Place(mirror(), sources_line(), needed=True)
    (folder / "kernel").mkdir()
    (file,) = Apt(_job(KERNEL, folder, say), folder / "apt", [place]).download([kernel.PACKAGE], folder / "kernel")
    with file.open("rb") as data:
        source = Package(kernel.PACKAGE, versions.of_file(file), hashlib.file_digest(data, "sha256").hexdigest())
    _write(KERNEL, Versions(date, (source,)), "The source of the lab kernel", say)
    installed = guest.install(_job(GUEST, folder, say), [place], None)
    _write(
        GUEST,
        Versions(date, tuple(Package(name, version) for name, version in sorted(installed.items()))),
        "Every package of the guest image",
        say,
    )


def publish(say: Say) -> None:
    """Puts the parts that are built here into the file of published parts, in place of those of earlier recipes."""
    file = PROJECT / PUBLISHED
    mine = [found[0] for part in CARRIED if (found := made(part, cache_dir())) and not found[1]]
    recipes = {entry.part: entry.recipe for entry in mine}
    kept = [entry for entry in published.read(file) if recipes.get(entry.part, entry.recipe) == entry.recipe]
    others = [entry for entry in kept if (entry.part, entry.tools) not in {(new.part, new.tools) for new in mine}]
    replace_text(file, published_text([*others, *mine]))
    say(f"{file}: {', '.join(entry.part for entry in mine) or 'no part is built here with the versions of its recipe'}")


def published_text(entries: list[published.Entry]) -> str:
    """The text of the file of published parts."""
    rows = [
        f"{entry.part} {entry.recipe} {entry.sha256} {entry.tools}"
        for entry in sorted(entries, key=lambda entry: (entry.part, entry.tools))
    ]
    return "\n".join([PUBLISHED_COMMENT, *rows]) + "\n"


def _job(part: Built, folder: Path, say: Say) -> Job:
    return Job(part.title, PROJECT / part.recipe, folder / part.product, cache_dir() / "pin.log", say)


def _write(part: Built, found: Versions, title: str, say: Say) -> None:
    file = PROJECT / part.recipe / versions.FILE
    changed = (
        versions.differences(versions.read(file), {package.name: package.version for package in found.packages})
        if file.exists()
        else []
    )
    if file.exists() and not changed:
        say(f"{file}: nothing has changed")
        return
    replace_text(file, versions.text(found, f"{title}, {COMMENT}"))
    say(f"{file}: {', '.join(changed) or 'written'}")
