"""One file with everything that a run can be had again from: plans, resolved scenario, versions, results, and a digest of every file.

The archive is a gzipped tar. Its archive.json lists for each run the digests of all files under cells/ and of results.csv; captures and records
themselves are only in it when asked for, because a re-run gives them again. The same run folder gives the same archive, byte for byte.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from scpslab.errors import ResultError
from scpslab.results.collect import FILE_NAME as RESULTS
from scpslab.results.run import MANIFEST_FILE

FORMAT = 1
CONTENTS = "archive.json"
SUFFIX = ".scpslab.tar.gz"
RESOLVED = "scenario.resolved.yaml"
PLAN = "plan.json"
# Small, and what a reader looks at first; everything else under cells/ is in the archive only with `whole`.
ALWAYS = ("plan.json", "status.json", "environment.json")
LARGEST_BYTES = 4 * 10**9
HOW = "scpslab verify ARCHIVE runs the plans again in virtual time and compares every file with these digests (SHA-256)."


class RunDigest(BaseModel):
    """What the archive says of one run: digests by path within the run folder."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    scenario: str
    engine: str
    seed: int
    files: dict[str, str]


class Contents(BaseModel):
    """archive.json."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int
    how: str
    runs: tuple[RunDigest, ...] = Field(min_length=1)


@dataclass(frozen=True)
class ArchivedRun:
    """One run as an archive has it: digests, plans by cell id, the resolved scenario, and the manifest of then."""

    digest: RunDigest
    plans: dict[str, dict[str, Any]]
    resolved: str
    manifest: dict[str, Any]


def write_archive(runs: Sequence[Path], target: Path, *, whole: bool = False) -> Path:
    """Packs the run folders into `target`; `whole` takes records, captures and logs along. Returns the target.

    Raises:
        ResultError: a run that is not complete or cannot be read.
    """
    digests = [_digest(run) for run in runs]
    contents = Contents(format=FORMAT, how=HOW, runs=tuple(digests))
    part = target.with_name(f"{target.name}.part")
    try:
        # No time stamps, owners or file order of this machine.
        with part.open("wb") as raw, gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as zipped, tarfile.open(fileobj=zipped, mode="w") as archive:
            _add(archive, CONTENTS, (contents.model_dump_json(indent=1) + "\n").encode())
            for run in runs:
                for file in _packed(run, whole=whole):
                    _add(archive, f"{run.name}/{file.relative_to(run).as_posix()}", file.read_bytes())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return target


def read_archive(path: Path) -> list[ArchivedRun]:
    """The runs of an archive. Nothing is unpacked to disk.

    Raises:
        ResultError: no archive of this program, one of a newer one, or one whose files are not those that it lists.
    """
    try:
        with tarfile.open(path, "r:gz") as archive:
            files = {member.name: _content(path, archive, member) for member in archive.getmembers() if member.isfile() and _is_wanted(member.name)}
    except (OSError, EOFError, tarfile.TarError) as error:
        raise ResultError(f'{path}: {error}; expected an archive as "scpslab export" writes it.') from error
    if CONTENTS not in files:
        raise ResultError(f'{path}: found no {CONTENTS}; expected an archive as "scpslab export" writes it.')
    try:
        contents = Contents.model_validate_json(files[CONTENTS])
    except ValidationError as error:
        first = error.errors()[0]
        raise ResultError(f"{path}: {CONTENTS}: {'.'.join(map(str, first['loc']))}: {first['msg']}; expected the contents of an archive.") from error
    if contents.format > FORMAT:
        raise ResultError(f"{path}: format: found {contents.format}; expected at most {FORMAT}. It was written by a newer scpslab: use that one.")
    return [_archived(path, digest, files) for digest in contents.runs]


def digests_of(run: Path) -> dict[str, str]:
    """SHA-256 of results.csv and of every file under cells/, by path within the run folder."""
    files = sorted(path for path in (run / "cells").rglob("*") if path.is_file())
    return {path.relative_to(run).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in (*files, run / RESULTS) if path.is_file()}


def _digest(run: Path) -> RunDigest:
    manifest = json.loads((run / MANIFEST_FILE).read_text(encoding="utf-8"))
    if manifest.get("status") != "completed":
        raise ResultError(f"{run}: status: found {manifest.get('status')}; expected a completed run. Run the scenario again: it goes on where it stopped.")
    return RunDigest(run=run.name, scenario=manifest["scenario"], engine=manifest["engine"], seed=manifest["seed"], files=digests_of(run))


def _packed(run: Path, *, whole: bool) -> Iterator[Path]:
    for name in (MANIFEST_FILE, RESOLVED, RESULTS):
        if (run / name).is_file():
            yield run / name
    for path in sorted((run / "cells").rglob("*")):
        if path.is_file() and (whole or path.name in ALWAYS):
            yield path


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o644
    archive.addfile(entry, io.BytesIO(content))


def _is_wanted(name: str) -> bool:
    return PurePosixPath(name).name in (CONTENTS, PLAN, RESOLVED, MANIFEST_FILE)


def _content(path: Path, archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    if file is None or member.size > LARGEST_BYTES:
        raise ResultError(f"{path}: {member.name}: found {member.size} bytes; expected a file of at most {LARGEST_BYTES}.")
    return file.read()


def _archived(path: Path, digest: RunDigest, files: dict[str, bytes]) -> ArchivedRun:
    plans = {}
    for name, expected in digest.files.items():
        if PurePosixPath(name).name != PLAN:
            continue
        content = files.get(f"{digest.run}/{name}")
        if content is None or hashlib.sha256(content).hexdigest() != expected:
            raise ResultError(f"{path}: {digest.run}/{name}: found {'no such file' if content is None else 'another one'}; expected the plan of {CONTENTS}.")
        plan = json.loads(content)
        plans[str(plan["cell"]["id"])] = plan
    if not plans:
        raise ResultError(f"{path}: {digest.run}: found no plan; expected at least one. Export the run again.")
    texts = {name: files.get(f"{digest.run}/{name}", b"").decode("utf-8") for name in (RESOLVED, MANIFEST_FILE)}
    return ArchivedRun(digest, plans, texts[RESOLVED], json.loads(texts[MANIFEST_FILE] or "{}"))
