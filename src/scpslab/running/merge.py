"""One run from its shards: the same bytes as those of a run on one machine, but for `machine`, `program` and `wall_s` in its manifest."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scpslab import results
from scpslab.errors import ResultError, UsageError
from scpslab.names import UNFINISHED, is_name
from scpslab.runfolder import CampaignFolder, RunFolder, held, is_campaign
from scpslab.runfolder.run import FILE, TOOK
from scpslab.running.build import ENGINE, PLANS, Build, engine_digest, plan_digest, plans_digest
from scpslab.running.shard import DONE, FOLDER
from scpslab.running.store import cell_key


@dataclass(frozen=True)
class _Shard:
    """The folder of a shard, and what its manifest says."""

    folder: RunFolder
    manifest: Mapping[str, Any]
    run: str
    number: int
    of: int
    build: Build

    @property
    def path(self) -> Path:
        """Its folder."""
        return self.folder.path


def merge(named: Sequence[Path], out: Path | None = None) -> list[Path]:
    """Makes one run of shards, or one campaign of the shards of a campaign; returns the folders of the runs, the campaign's folder last.

    `out`: the folder to make (None: the one that a whole run would have). Shards stay as they are.

    Raises:
        ResultError: shards that are missing, there twice, not finished, damaged, or of different runs or builds.
        UsageError: `out` has something else.
    """
    if all(is_campaign(path) for path in named):
        return _campaign([CampaignFolder(path) for path in named], out)
    shards = [_read(RunFolder(path)) for path in named]
    return [_run(shards, out or _beside(shards[0].path, shards[0].run))]


def _read(folder: RunFolder) -> _Shard:
    manifest = folder.manifest()
    found = manifest.get("shard")
    if not isinstance(found, dict):
        raise ResultError(f'{folder.path}: found a whole run; expected a shard, which "scpslab run SCENARIO --shard k/n" makes. Leave it out.')
    run, number, of, build = found.get("run"), found.get("number"), found.get("of"), Build.read(found.get("build"))
    if not (is_name(run) and isinstance(run, str) and isinstance(number, int) and isinstance(of, int) and 1 <= number <= of and build):
        raise ResultError(f"{folder.manifest_file}: shard: found {str(found)[:80]}; expected run, number, of and build. Run the shard again.")
    if manifest.get("status") != DONE:
        again = f"{manifest.get('command', 'scpslab run SCENARIO')} --shard {number}/{of}"
        raise ResultError(f'{folder.path}: status: found {str(manifest.get("status"))[:40]}; expected a finished shard. Run "{again}": it resumes.')
    return _Shard(folder, manifest, run, number, of, build)


def _check_alike(shards: Sequence[_Shard]) -> None:
    first = shards[0]
    for other in shards[1:]:
        place = f"{first.path} and {other.path}"
        if other.run != first.run:
            raise ResultError(f"{place}: found shards of different runs, {first.run} and {other.run}; expected one run. Merge each run by itself.")
        if other.of != first.of:
            raise ResultError(f"{place}: found shards of {first.of} and of {other.of}; expected the same number. Take the shards of one division.")
        if differences := other.build.differences(first.build):
            raise ResultError(f"{place}: in the second found {'; '.join(differences)}; expected one build. Run one of them again where the others ran.")
    by_number: dict[int, _Shard] = {}
    for shard in shards:
        if shard.number in by_number:
            raise ResultError(f"{by_number[shard.number].path} and {shard.path}: found shard {shard.number}/{shard.of} twice; expected it once. Leave one out.")
        by_number[shard.number] = shard
    if missing := [number for number in range(1, first.of + 1) if number not in by_number]:
        listed = ", ".join(f"{number}/{first.of}" for number in missing[:10]) + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
        raise ResultError(
            f"{first.run}: found {len(by_number)} of {first.of} shards, not {listed}; expected all. "
            f'Run each with "{first.manifest.get("command", "scpslab run SCENARIO")} --shard k/n", or name its folder.'
        )


def _run(shards: Sequence[_Shard], target: Path) -> Path:
    _check_alike(shards)
    entries = _entries(shards)
    if target.exists() and any(target.iterdir()):
        _require_same(target, entries)
        return target
    part = target.with_name(target.name + UNFINISHED)
    with held(part):
        shutil.rmtree(part / "cells", ignore_errors=True)
        merged = RunFolder(part)
        merged.cells.mkdir()
        for shard in shards:
            for cell_id in shard.manifest["cells"]:
                shutil.copytree(shard.folder.cell(cell_id).path, merged.cell(cell_id).path)
        _copy_inputs(shards[0], part)
        merged.write_manifest(_manifest(shards, entries, target))
        results.collect(part)
        target.parent.mkdir(parents=True, exist_ok=True)
        part.rename(target)
    return target


def _entries(shards: Sequence[_Shard]) -> dict[str, dict[str, str]]:
    """The manifest's entries of all cells, every plan of which is checked."""
    entries: dict[str, dict[str, str]] = {}
    digests = {}
    hashes = shards[0].manifest.get("engine_hashes", [])
    if engine_digest(hashes) != shards[0].build.digests[ENGINE]:
        raise ResultError(f"{shards[0].path}: engine_hashes: found others than those of its build; expected the same. Run the shard again.")
    for shard in shards:
        for cell_id, entry in shard.folder.known_cells().items():
            cell = results.open_cell(shard.folder.cell(cell_id).path)
            if cell_id in entries:
                raise ResultError(f"{cell.folder}: found the cell in another shard too; expected it once. Run both shards again.")
            if cell.id != cell_id or entry.get("key") not in {cell_key(cell.plan, one) for one in hashes}:
                raise ResultError(f"{cell.folder}: found a plan that is not the one that ran; expected that of cell {cell_id}. Run the shard again.")
            if cell.status != entry.get("status"):
                raise ResultError(f"{cell.folder}: found status {cell.status}; the shard's manifest says {entry.get('status')}. Run the shard again.")
            entries[cell_id], digests[cell_id] = entry, plan_digest(cell.plan)
    if plans_digest(digests) != shards[0].build.digests[PLANS]:
        raise ResultError(f"{shards[0].run}: found {len(entries)} cells that are not all cells of the run; expected exactly those. Run the shards again.")
    return dict(sorted(entries.items()))


def _require_same(target: Path, entries: Mapping[str, Mapping[str, str]]) -> None:
    manifest = RunFolder(target).manifest() if RunFolder(target).manifest_file.is_file() else {}
    if manifest.get("status") != "completed" or manifest.get("cells") != entries:
        raise UsageError(f"{target}: found a folder with something else; expected no folder, or this run. Move it away, or choose another folder with --out.")


def _copy_inputs(shard: _Shard, target: Path) -> None:
    for path in (shard.folder.resolved, *shard.folder.own_files()):
        place = target / path.relative_to(shard.path)
        place.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, place)


def _manifest(shards: Sequence[_Shard], entries: Mapping[str, Any], target: Path) -> dict[str, Any]:
    first = shards[0]
    manifest = {name: value for name, value in first.manifest.items() if name != "shard"}
    if isinstance(named := manifest.get(FILE), str):
        manifest[FILE] = os.path.relpath((first.path / named).resolve(), target.resolve())
    took = {cell_id: seconds for shard in shards for cell_id, seconds in shard.folder.known_times().items()}
    # Shards ran side by side.
    wall_s = max(float(shard.manifest.get("wall_s") or 0) for shard in shards)
    return manifest | {"status": "completed", "cells": dict(entries), TOOK: dict(sorted(took.items())), "wall_s": wall_s}


def _campaign(folders: Sequence[CampaignFolder], out: Path | None) -> list[Path]:
    files = [folder.read() for folder in folders]
    names = {str(file["shard"].get("campaign")) if isinstance(file.get("shard"), dict) else "" for file in files}
    name = names.pop()
    if names or not is_name(name):
        place = ", ".join(str(folder.path) for folder in folders)
        raise ResultError(f'{place}: found no shards of one campaign; expected what "scpslab run CAMPAIGN --shard k/n" made. Merge each campaign by itself.')
    if unfinished := [folder.path for folder, file in zip(folders, files, strict=True) if file["status"] != "completed"]:
        raise ResultError(f"{unfinished[0]}: found a campaign that is not finished; expected all of its runs. Run its shard again: it resumes.")
    target = out or _beside(folders[0].path, name)
    members = []
    for runs in zip(*(folder.runs() for folder in folders), strict=True):
        shards = [_read(run) for run in runs]
        members.append(RunFolder(_run(shards, target.parent / shards[0].run)))
    merged = CampaignFolder(target)
    entries = [{**entry, "cells": len(run.known_cells()), "run": merged.path_of(run)} for entry, run in zip(files[0]["runs"], members, strict=True)]
    total = {key: sum(file.get(key, 0) for file in files) for key in ("cells", "cells_from_cache", "virtual_s")}
    head = {key: value for key, value in files[0].items() if key not in ("format", "shard")}
    merged.write(head | total | {"wall_s": max(file.get("wall_s", 0) for file in files), "runs": entries}, members)
    return [*(run.path for run in members), target]


def _beside(shard: Path, name: str) -> Path:
    """Where a whole run would be."""
    parent = shard.resolve().parent if shard.is_symlink() else shard.parent
    return (parent.parent if parent.name == FOLDER else parent) / name
