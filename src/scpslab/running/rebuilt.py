"""The plans of an archived run against its scenario: whoever changes one of the two is found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from scpslab import plan as plans
from scpslab import scenario
from scpslab.core.errors import ScenarioError
from scpslab.core.folders import TOPOLOGIES
from scpslab.core.scratch import scratch
from scpslab.plan import Plan
from scpslab.plan.schema import shown
from scpslab.runs.archive import OWN_TOPOLOGY, ArchivedRun
from scpslab.runs.run import VECTORS
from scpslab.scenario import planning
from scpslab.scenario.recorded import Recorded
from scpslab.scenario.topologies import NoOwn, OnDisk, Topologies, TopologyError

from scpslab.kinds.errors.vector_file import scenario as vector_file
from scpslab.kinds.errors.vector_file.plan import VectorFile
from scpslab.kinds.workloads.policy.plan import Policy, is_policy_name


def contradictions(run: ArchivedRun, *, is_trusted: bool = False) -> list[str]:
    """Where the archived plans are not those that the archived scenario gives, one line each.

    Networks of own topologies are those that the archive records; only `is_trusted` runs the topologies' files, which
    are the archive's. Nothing but new files of a scratch folder is written, and no file is opened that a plan or the
    scenario names by its path.
    """
    with scratch() as folder, stored_vectors(run):
        file = folder / "scenario.yaml"
        file.write_text(run.resolved, encoding="utf-8")
        try:
            topologies = _topologies(run, folder, is_trusted=is_trusted)
            _lend_policies(run, folder)
            loaded = scenario.load(str(file), topologies=topologies)
            # The scenario's name is its file's name; the archived run knows the name of then.
            named = replace(loaded, base_name=next(iter(run.plans.values())).cell.scenario)
            given = planning.plans(scenario.cells(named))
        except (ScenarioError, TopologyError) as error:
            return [
                f"the scenario cannot be planned: {line}"
                for line in str(error).replace(str(file), run.resolved_name).splitlines()
            ]
    return list(_differences(given, run.plans))


def _topologies(run: ArchivedRun, folder: Path, *, is_trusted: bool) -> Topologies:
    if is_trusted:
        for name, content in run.own.items():
            if name.endswith(OWN_TOPOLOGY):
                _write_new(folder / name, content)
        return OnDisk(is_trusted=True)
    return Recorded(run.own[TOPOLOGIES]) if TOPOLOGIES in run.own else NoOwn()


def _differences(given: dict[str, Plan], archived: dict[str, Plan]) -> Iterator[str]:
    for cell_id in (*archived, *(name for name in given if name not in archived)):
        if cell_id not in given or cell_id not in archived:
            yield (
                f"cell {cell_id}: found {'a plan' if cell_id in archived else 'no plan'}; "
                f"the scenario gives {'none' if cell_id in archived else 'one'}"
            )
        elif found := _first_difference(plans.write(archived[cell_id]), plans.write(given[cell_id])):
            yield f"cell {cell_id}: {found}"


def _first_difference(archived: Any, given: Any, at: str = "") -> str:
    """The first place where two JSON values differ, with both values; "" if there is none."""
    if isinstance(archived, dict) and isinstance(given, dict):
        for key in (*archived, *(key for key in given if key not in archived)):
            if found := _first_difference(archived.get(key), given.get(key), f"{at}.{key}" if at else key):
                return found
        return ""
    if isinstance(archived, list) and isinstance(given, list) and len(archived) == len(given):
        return next(
            (
                found
                for index, pair in enumerate(zip(archived, given, strict=True))
                if (found := _first_difference(*pair, f"{at}[{index}]"))
            ),
            "",
        )
    return "" if archived == given else f"{at}: found {shown(archived)}; the scenario gives {shown(given)}"


def stored_vectors(run: ArchivedRun) -> AbstractContextManager[None]:
    """Makes the run's stored error vectors those of all plans: a plan names them by paths of the machine that made
    it.
    """
    contents = {
        name.removeprefix(f"{VECTORS}/"): content for name, content in run.own.items() if name.startswith(f"{VECTORS}/")
    }
    return vector_file.of_a_run(vector_file.Stored(frozenset(vectors_of(run.plans.values())), contents))


def vectors_of(of: Iterable[Plan]) -> Iterator[VectorFile]:
    """The stored error vectors of plans."""
    for impairment in (impairment for plan in of for impairment in plan.cell.impairments):
        if impairment.errors is not None and isinstance(impairment.errors.settings, VectorFile):
            yield impairment.errors.settings


def _lend_policies(run: ArchivedRun, folder: Path) -> None:
    """Puts the policies where the scenario names them: plans hold their text.

    A name with a folder in it is one that no scenario gives.
    """
    for workload in (workload for plan in run.plans.values() for workload in plan.cell.workloads):
        if isinstance(workload, Policy) and is_policy_name(workload.file):
            _write_new(folder / workload.file, workload.code.encode())


def _write_new(path: Path, content: bytes) -> None:
    """Writes a file that is not there yet, also not as a link to nowhere. One that is there stays."""
    with suppress(FileExistsError), path.open("xb") as file:
        file.write(content)
