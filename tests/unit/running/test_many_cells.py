"""What a run does besides its cells grows with their number, not with its square; no plan stays in memory. Cells are
spread over the cores; several commands at a time do not all begin at the first. Cells are carried out longest
first, those of one network one after the other; cells with one key run once. Archived plans held against the
archived scenario. The folder of a run has one owner: what is where in it is known in one place. Runs whose bytes
may differ, which is told: hosts with images of others, and those of other rules. What a worker does with an order:
it runs the cells of its own build, and says why it does not run others.
"""

import io
import json
import os
import weakref
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from scpslab import scenario
from scpslab.analysis.collect import row_of, rows_as_csv
from scpslab.analysis.run import cell_folders, open_cell, open_run
from scpslab.cli.run import _say
from scpslab.core.errors import ResultError, UsageError
from scpslab.core.project import ROOT
from scpslab.engine import ENGINES, CellSample
from scpslab.engine.console import read
from scpslab.engine.uml import no_network
from scpslab.running import RunOptions, remote, run_campaign
from scpslab.running.events import CellDone, Note
from scpslab.running.executors import LocalExecutor, batches, in_order
from scpslab.running.run_plan import program
from scpslab.running.verify import Verification, contradictions, other_rules, verify
from scpslab.runs import CellFiles, RunFolder
from scpslab.runs.archive import ArchivedRun, RunDigest, read_archive, write_archive
from scpslab.runs.run import Manifest, Program, check_format
from scpslab.runs.store import unpack
from scpslab.scenario import planning
from scpslab.scenario.errors import RULES
from scpslab.scenario.load import resolved_yaml
from scpslab_course.grading.compare import Rerun, against_rerun
from scpslab_course.grading.grade import Code
from tests import golden
from tests.cases import refusal

CELLS = 240
MANY = ["repeats=80", "workloads.transfer.start={random: 0 s..1 s}"]


@pytest.fixture
def written(monkeypatch):
    """The number of cells in each manifest that is written."""
    sizes = []
    write = RunFolder.write_manifest

    def counted(folder, progress):
        sizes.append(len(progress.cells))
        write(folder, progress)

    monkeypatch.setattr(RunFolder, "write_manifest", counted)
    return sizes


def test_manifests_of_a_long_run_are_not_most_of_its_work(run_fake, written):
    run_fake(overrides=MANY)

    assert written[:21] == list(range(21))
    assert written[-1] == CELLS
    assert sum(written) < 25 * CELLS
    assert max(after - before for before, after in pairwise(written)) <= CELLS / 19


def test_measurements_that_nobody_repeats_are_in_the_manifest_at_once(run_fake, written):
    run_fake(overrides=["repeats=12"], repeats=False)

    assert set(range(37)) <= set(written)


def test_a_run_that_breaks_has_its_cells_in_the_manifest(run_fake, tmp_path):
    done = []

    def broken(event):
        if isinstance(event, CellDone):
            done.append(event.cell)
            if len(done) == CELLS - 1:
                raise OSError

    with pytest.raises(OSError, match="^$"):
        run_fake(overrides=MANY, listeners=[broken])

    (folder,) = RunFolder.all_in(tmp_path / "runs")
    assert set(folder.manifest().cells) == set(done)


def test_a_table_is_made_of_one_plan_after_the_other(run_fake):
    folder = run_fake(overrides=MANY).folder
    plans, most = [], 0

    def watched():
        nonlocal most
        for cell in map(open_cell, cell_folders(folder)):
            plans.append(weakref.ref(cell))
            most = max(most, sum(plan() is not None for plan in plans))
            yield cell

    text = rows_as_csv(map(row_of, watched()))

    assert most <= 2
    assert text == rows_as_csv(map(row_of, open_run(folder).cells[::-1])) == (folder / "results.csv").read_text()


@pytest.mark.parametrize(
    ("process", "jobs", "cores"),
    [(8, 1, [2]), (9, 1, [4]), (8, 2, [2, 4]), (9, 2, [4, 2]), (9, None, [4, 2]), (9, 3, [None, None, None])],
)
def test_commands_with_few_jobs_begin_at_different_cores(monkeypatch, process, jobs, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {4, 2})
    monkeypatch.setattr(os, "getpid", lambda: process)

    assert LocalExecutor(jobs)._cores(3) == cores


def test_a_single_cell_has_a_single_core(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {4, 2})

    assert len(LocalExecutor(None)._cores(1)) == 1


NETWORKS = {name: no_network({"wall_s": 60, "memory_mib": mib}) for name, mib in (("a", 256), ("b", 512), ("c", 1024))}


@pytest.mark.parametrize(("jobs", "expected"), [(1, "a3 a1 b2 b1 c1"), (2, "a3 b2 a1 b1 c1"), (8, "a3 b2 c1 a1 b1")])
def test_longest_first_and_as_many_networks_at_a_time_as_jobs(jobs, expected):
    costs_s = {"b1": 1.0, "a1": 1.5, "c1": 0.5, "b2": 2.0, "a3": 3.0}
    plans = {name: NETWORKS[name[0]] for name in costs_s}
    assert in_order(plans, costs_s, jobs) == expected.split()


@pytest.mark.parametrize("most_s", [0, 3, 1e9])
def test_batches_hold_every_cell_once_and_are_no_longer_than_asked(most_s):
    plans = {cell.id: planning.plan(cell) for cell in scenario.cells(scenario.load("fy97/fig04:kernel-demo"))}
    found = list(batches(plans, most_s))
    assert sorted(cell for batch in found for cell in batch) == sorted(plans)
    assert all(
        len(batch) == 1 or sum(planning.expected(plans[cell]).wall_s for cell in batch) <= most_s for batch in found
    )
    assert (max(map(len, found)) == 1) == (most_s == 0)


def test_a_cell_of_two_runs_is_carried_out_once(run_fake, tmp_path):
    """The other one takes its result, and both runs are whole."""
    (tmp_path / "campaign.yaml").write_text(
        "kind: campaign\nversion: 1\ntitle: Twice\nruns:\n  - {scenario: links/transfer}\n"
        "  - {scenario: links/transfer, set: {title: Again}}\n"
    )
    result = run_fake(str(tmp_path / "campaign.yaml"), run=run_campaign)

    facts = json.loads((result.folder / "campaign.json").read_text())
    assert (facts["cells"], facts["cells_from_cache"]) == (6, 3)
    assert len({run.folder for run in result.runs}) == 2
    assert [run.incomplete for run in result.runs] == [3, 3]


@pytest.fixture
def archived():
    """A run as an archive has it, of two cells."""
    two = ["repeats=1", "sweep.ber.values=[1e-5]", 'sweep.stack=["cubic", "bbr"]', 'sweep.errors=["independent"]']
    loaded = scenario.load("fy97/fig04", two)
    digest = RunDigest(run="fig04-1", scenario=loaded.name, engine="virtual", seed=loaded.seed, files={}, inputs={})
    plans = {cell.id: planning.plan(cell) for cell in scenario.cells(loaded)}
    return ArchivedRun(digest, plans, resolved_yaml(loaded), {})


def test_plans_of_the_scenario_contradict_nothing(archived):
    assert contradictions(archived) == []


def test_a_plan_that_was_changed_is_named_with_both_values(archived):
    name = next(iter(archived.plans))
    plan = archived.plans[name]
    changed = replace(
        plan, cell=replace(plan.cell, workloads=(replace(plan.cell.workloads[0], bytes_=77), *plan.cell.workloads[1:]))
    )

    found = contradictions(replace(archived, plans=archived.plans | {name: changed}))
    golden.Case("contradictions of an archive", "a changed plan").hold("\n".join(found))


def test_a_scenario_that_was_changed_is_found_in_every_cell(archived):
    resolved = archived.resolved.replace("4000000", "4000001").replace("20000 B", "20001 B")
    found = contradictions(replace(archived, resolved=resolved))
    golden.Case("contradictions of an archive", "a changed scenario").hold("\n".join(found))


def test_a_cell_that_is_missing_is_named(archived):
    (name, plan), _ = archived.plans.items()
    found = contradictions(replace(archived, plans={name: plan}))
    golden.Case("contradictions of an archive", "a missing cell").hold("\n".join(found))


def test_a_scenario_that_cannot_be_planned_is_said_with_its_lines(archived):
    found = contradictions(replace(archived, resolved=archived.resolved.replace("topology: fy97", "topology: fy79")))
    golden.Case("contradictions of an archive", "no plan").hold("\n".join(found))


def test_a_folder_without_a_status_is_of_a_cell_that_did_not_end(tmp_path):
    assert not CellFiles(tmp_path).has_ended
    assert CellFiles(tmp_path).status().status == "failed"


def test_a_name_that_leads_elsewhere_is_no_record(tmp_path, told):
    told("name of a record", "../../secret", CellFiles(tmp_path).record, "../../secret")


def test_cells_that_are_half_made_are_not_cells_of_the_run(tmp_path):
    run = RunFolder(tmp_path)
    for name in ("r1", "r2.part", "r3"):
        (run.cells / name).mkdir(parents=True)
    run.cell("r1").plan.write_text("{}")

    assert [cell.path.name for cell in run.planned_cells()] == ["r1"]


@pytest.mark.parametrize("found", [3, "x", 0])
def test_a_file_of_another_format_is_refused_with_what_to_do(found, told):
    told("format of a file", str(found), check_format, Path("manifest.json"), found, newest=2)


SAYS = "found hosts with images of others (scpslab/scps-host:"


def test_a_run_names_cells_with_images_of_others(run_fake):
    told = []
    run = run_fake("links/interop-images:test", listeners=[told.append]).folder
    manifest = json.loads((run / "manifest.json").read_text())

    assert any(isinstance(event, Note) and event.text.startswith(SAYS) for event in told)
    assert manifest["not_promised"] == sorted(manifest["cells"])


def test_other_runs_and_measurements_promise_as_before(run_fake, tmp_path):
    told = []
    for name, repeats in (("links/transfer", True), ("links/interop-images:test", False)):
        run = run_fake(name, repeats=repeats, listeners=[told.append], out=tmp_path / name).folder
        assert "not_promised" not in json.loads((run / "manifest.json").read_text())

    assert not [event for event in told if isinstance(event, Note) and event.text.startswith(SAYS)]


def test_verify_says_why_bytes_may_differ(in_this_process, run_fake, tmp_path, capsys):
    run = run_fake("links/interop-images:test").folder
    status = next(run.glob("cells/*/status.json"))
    status.write_text(status.read_text().replace("fake", "other"))
    (found,) = verify(write_archive([run], tmp_path / "a.tar.gz"), RunOptions(jobs=1))
    _say(found)

    assert not found.is_same
    assert SAYS in capsys.readouterr().out


# A run of one cell, as an older version made it.
OLD_RUN = ROOT / "tests" / "data" / "formats" / "run-1"
OLD = Program("0.3.0", None, is_changed=False, rules=None)
SINCE = "made with 0.3.0, whose cells have other bytes: install that to verify or grade it, or run again"


@pytest.fixture
def old(tmp_path):
    """The run."""
    found = read_archive(write_archive([OLD_RUN], tmp_path / "old.tar.gz"))[0]
    return replace(found, manifest=replace(found.manifest, program=OLD))


def test_a_run_of_other_rules_is_named():
    assert program()["vectors"] == RULES
    assert other_rules(Program.of(program())) == ""
    assert other_rules(OLD) == SINCE
    assert other_rules(None) == SINCE.replace("0.3.0", "an older version")


def test_a_grader_calls_it_another_version_and_verify_says_so(old, capsys):
    cell = next(iter(old.plans))
    files, manifest = dict.fromkeys(old.digest.files, "0" * 64), Manifest(cells=old.manifest.cells)
    mine = Rerun(files, (), (), (cell,), manifest=manifest)
    (finding,) = against_rerun({"small": old}, {}, {"small": mine})
    assert finding.code == Code.OTHER_VERSION
    assert SINCE in str(finding)

    because = other_rules(OLD)
    _say(Verification("run", (), ("a.pcap",), (), (), False, (), cells=("r1",), of=1, because=because))
    assert f"run: {SINCE}" in capsys.readouterr().out


@pytest.fixture
def plans(run_fake):
    """The plans of a run, which has also put the fake engine in its place."""
    run_fake()
    return {cell.id: planning.plan(cell) for cell in scenario.cells(scenario.load("links/transfer"))}


@pytest.fixture
def benches(tmp_path):
    return remote.Benches(tmp_path)


def carried_out(benches, plans, run="run", engine=None, log=lambda *_said: None):
    order = remote.order(run, plans, engine or ENGINES["virtual"]())
    return remote.read_answer(benches.carry_out(order, log), list(plans))


def test_results_come_packed_and_leave_nothing(plans, benches, tmp_path):
    answer = carried_out(benches, plans)
    assert [given.cell for given in answer.cells] == list(plans)
    unpack(io.BytesIO(answer.cells[0].content), tmp_path / "cell")
    assert json.loads((tmp_path / "cell" / "plan.json").read_text())["cell"]["id"] == next(iter(plans))
    benches.stop("run")
    assert [path.name for path in tmp_path.glob("scpslab-*")] == []


def test_another_build_is_refused(plans, benches):
    class Other(ENGINES["virtual"]):
        def hash(self, plan):
            return "other"

    answer = carried_out(benches, plans, engine=Other())
    assert answer.cells == ()
    assert "found another lab program or SCPS stack" in answer.trouble


def test_a_run_that_was_stopped_begins_no_cell(plans, benches):
    benches.stop("over")
    with pytest.raises(ResultError, match="no result and no reason"):
        carried_out(benches, plans, "over")


def test_trouble_ends_the_batch(plans, benches, monkeypatch):
    def full(engine, cell):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ENGINES["virtual"], "run", full)
    assert carried_out(benches, plans) == remote.Answer((), "[Errno 28] No space left on device")


@pytest.mark.parametrize(("apart_s", "heard"), [(0.0, 6), (60.0, 1)])
def test_samples_of_cells_are_logged_now_and_then(plans, benches, monkeypatch, apart_s, heard):
    """The first is; a scheduler with many workers could not pass on all."""
    monkeypatch.setattr(remote, "SAMPLE_S", apart_s)
    run, logged = ENGINES["virtual"].run, []

    def talking(engine, cell):
        for t_s in (0.5, 1.5):
            cell.hear(CellSample(t_s, "transfer", {"bytes_acked": 7}))
        return run(engine, cell)

    monkeypatch.setattr(ENGINES["virtual"], "run", talking)
    answer = carried_out(benches, plans, log=lambda *said: logged.append(said))

    assert len(answer.cells) == len(plans) == 3
    assert [(topic, cell) for topic, (cell, _) in logged] == [("scpslab-run", cell) for cell in plans for _ in "12"][
        :heard
    ]
    said = [read(line.encode(), frozenset({"transfer"})) for _, (_, line) in logged]
    assert said == [CellSample(t_s, "transfer", {"bytes_acked": 7}) for _ in plans for t_s in (0.5, 1.5)][:heard]


def test_a_batch_that_has_become_large_ends(plans, benches, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(remote, "MOST_BYTES", 10)
        assert len(carried_out(benches, plans).cells) == 1
    # However long it has prepared.
    monkeypatch.setattr(remote, "MOST_S", -1)
    assert len(carried_out(benches, plans).cells) == 1


@golden.each("answer of a worker", "case given")
def test_an_answer_is_what_a_worker_of_ours_writes(case, given):
    case.hold(refusal(remote.read_answer, given.encode(), ["r1"], error=ResultError))


def test_an_object_of_python_is_no_answer(told):
    told("answer of a worker that is no text", "an object", remote.read_answer, {"cells": []}, ["r1"])
    told("answer of a worker that is no text", "nothing", remote.read_answer, b"", ["r1"])


def test_an_answer_says_what_the_worker_gave():
    given = remote.Answer((remote.Given("r1", b"one\n", 1.5), remote.Given("r3", b"", 0.0)), "found no room")
    assert remote.read_answer(remote.pack_answer(given), ["r1", "r3", "r4"]) == given


@golden.each("where cells run")
def test_what_was_asked_for_must_fit(case, run_fake):
    pytest.importorskip("distributed")
    case.hold(refusal(run_fake, **yaml.safe_load(case), error=UsageError))


def test_the_order_of_a_second_run_leaves_a_cell_that_runs_its_folder(plans, benches, monkeypatch):
    monkeypatch.setattr(remote, "IDLE_S", -1)
    run = ENGINES["virtual"].run
    folders = []

    def slow(engine, cell):
        if not folders:
            folders.append(cell.folder.parent)
            assert carried_out(benches, plans, "second").trouble is None
        assert folders[0].is_dir()
        run(engine, cell)

    monkeypatch.setattr(ENGINES["virtual"], "run", slow)
    assert carried_out(benches, plans, "first").trouble is None
    # Nothing runs any more: a third run's order closes both.
    monkeypatch.setattr(ENGINES["virtual"], "run", run)
    carried_out(benches, plans, "third")
    assert not folders[0].is_dir()
