"""Engine `host` on a machine that can run it: a guest in real time plays that machine, with root, netem, Open vSwitch
and Docker of its own.

Labs there complete, and one whose maker is killed at any point is removed without a trace, and nothing else is.
SCPSLAB_KILLS says at how many points (make test-host: 50).
"""

import json
import os
from dataclasses import replace

import pytest
from rich.console import Console

from scpslab import plan as plans
from scpslab import scenario
from scpslab.analysis.compare import Options, compare_runs
from scpslab.analysis.compare_texts import report
from scpslab.analysis.table import read_results
from scpslab.cli.shell import shell_plan
from scpslab.cli.tables import as_table
from scpslab.engine import ENGINES
from scpslab.engine.live import LiveEngine
from scpslab.scenario import planning
from scpslab.setup import ensure, silent
from tests.lab.guest_machine import HostInGuest, program_folder
from tests.lab.test_docker import images_can_be_had

KILLS = int(os.environ.get("SCPSLAB_KILLS", "4"))
LIMITS = {"memory_mib": 2048, "wall_s": 900 + 60 * KILLS}
SETTINGS = ["sweep={}", "hosts.*={preset: modern}", "workloads.transfer.size=50 kB"]
# Small cells: a kernel's transfer, one of SCPS-TP over SCPS-NP through two routers on a serial line, protected by
# SCPS-SP, and one through gateways.
CELLS = {
    "kernel": ("fy97/fig04:test", SETTINGS),
    "np": ("np/sp", ["sweep={}", "workloads.transfer.size=50 kB", "hosts.*.sp={}"]),
    "gateway": ("links/gateway:test", ["sweep.path=[split]", "sweep.size=[50 kB]"]),
}
# The kinds of nodes of the labs; "np-docker" has containers as routers on the serial line.
KINDS = {
    "process": "kernel",
    "np": "np",
    "gateway": "gateway",
    "docker": "kernel",
    "np-docker": "np",
    "gateway-docker": "gateway",
}


def plan_of(kind: str) -> str:
    """The plan of a small cell."""
    name, settings = CELLS[KINDS[kind]]
    containers = "docker" if kind.endswith("docker") else "process"
    (cell,) = scenario.cells(scenario.load(name, [*settings, f"containers={containers}"]))
    return plans.text(planning.plan(cell))


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What the job in the guest saw."""
    folder = tmp_path_factory.mktemp("host")
    program, cell = program_folder(folder / "program", "run_lab.py", with_stack=True), folder / "cell"
    cell.mkdir()
    kinds = [kind for kind in KINDS if images_can_be_had() or not kind.endswith("docker")]
    for kind in kinds:
        (cell / f"plan-{kind}.json").write_text(plan_of(kind))
    (cell / "job.json").write_text(json.dumps({"plans": kinds, "kills": KILLS, "seed": 1997}))
    console = LiveEngine().boot(ensure(silent, with_docker="docker" in kinds), program, cell, LIMITS)
    error = cell / "out" / "error.txt"
    assert not error.exists(), f"{error.read_text()} {console}"
    assert (cell / "out" / "result.json").exists(), console
    return json.loads((cell / "out" / "result.json").read_text())


def test_labs_on_the_machine_s_own_kernel_complete(seen):
    """With nodes that are processes, and with Docker's containers; every byte is right and every account closes."""
    for lab in seen["whole"]:
        assert lab["status"]["status"] == "completed", lab
        receiver = next(line for line in lab["records"]["transfer"] if line["event"] == "receiver")
        assert (receiver["bytes"], receiver["wrong_bytes"]) == (50_000, 0)
        assert all(line["closes"] for line in lab["records"]["accounting"])


def test_routers_of_scps_np_forward_there_over_a_line_in_real_time(seen):
    labs = [lab for lab in seen["whole"] if KINDS[lab["plan"]] == "np"]
    assert labs
    for lab in labs:
        directions = {line["direction"]: line for line in lab["records"]["modem"] if line["event"] == "direction"}
        assert directions["forward"]["sent_frames"] == directions["forward"]["received_frames"] > 30
        (sender,) = [line for line in lab["records"]["transfer"] if line["event"] == "sender"]
        assert sender["scps"]["sp"]["sealed"] > 30


def test_gateways_split_connections_there(seen):
    labs = [lab for lab in seen["whole"] if KINDS[lab["plan"]] == "gateway"]
    assert labs
    for lab in labs:
        for name, side in (("near", "from_lan"), ("far", "from_wan")):
            *_, totals = lab["records"][name]
            assert (totals["event"], totals["closes"], totals[side]["delivered"]) == ("counters", True, 50_000)


def test_a_prompt_whose_terminal_is_a_page_works_there(tmp_path):
    """Ctrl-C ends a command, links change while it runs, and the packets can be looked at meanwhile."""
    program, cell = program_folder(tmp_path / "program", "prompt.py"), tmp_path / "cell"
    cell.mkdir()
    plan = shell_plan("point_to_point", {})
    (cell / "plan.json").write_text(plans.text(replace(plan, cell=replace(plan.cell, packets=True))))
    console = LiveEngine().boot(ensure(silent, with_docker=False), program, cell, LIMITS)
    said = json.loads((cell / "out" / "result.json").read_text())
    assert "error" not in said, f"{said['error']} {console}"
    assert "2 received" in said["text"]
    assert said["has_record"]
    assert said["code"] == 0
    steps = [json.loads(line) for line in said["transcript"].splitlines()]
    assert [step["do"] for step in steps] == ["run", "run", "link", "interrupted"]


def test_killed_labs_leave_nothing_and_take_nothing(seen):
    """At seeded points of a lab's life its maker is killed; things with names like a lab's stay."""
    assert len(seen["killed"]) == KILLS + 1
    assert [point for point in seen["killed"] if point["differs"]] == []
    assert any(point["removed"] for point in seen["killed"])


REPEATS = int(os.environ.get("SCPSLAB_AGREEMENT", "0"))
# Computing takes time where time is real: some 10 ms of 20 s in engine live. What is left is for a clock that ticks
# every 10 ms.
TOLERANCE = 0.02


@pytest.mark.skipif(not REPEATS, reason="minutes of real time: make test-host")
def test_the_machine_s_kernel_in_real_time_agrees_with_virtual_time(run, monkeypatch):
    """FY97's Fig 4 without errors: TCP, BBR and SCPS-TP take the same time. SCPSLAB_AGREEMENT: how often."""
    monkeypatch.setitem(ENGINES, HostInGuest.name, HostInGuest)
    ran = [
        run("fy97/fig04:engines", f"repeats={REPEATS}", "sweep.ber.values=[0]", engine=name, jobs=None)
        for name in (HostInGuest.name, "virtual")
    ]
    assert [one.ended for one in ran] == [(4 * REPEATS, 0, 0)] * 2

    compared = compare_runs([read_results(one.folder) for one in ran], Options(metrics=["transfer_s"]))
    Console(width=160).print(as_table(report(compared)))
    assert len(compared.pairs) == 4
    for pair in compared.pairs:
        assert pair.first.mean == pytest.approx(pair.second.mean, rel=TOLERANCE), pair.key
