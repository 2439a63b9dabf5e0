"""Machines of the appliance as the host sees them: jobs, answers and files; one that ends, hangs or says nonsense.

QEMU itself is a script here.
"""

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from scpslab.engine.appliance import machine as machine_module
from scpslab.engine.appliance.machine import Job, Machine, MachineCell, Machines, Parts, copy_program
from scpslab.engine.cell_folder import CellFolder
from scpslab.engine.uml import no_network
from scpslab.plan.cell import LONGEST_S

PLAN = no_network({"wall_s": 5, "memory_mib": 64})
# What every script begins with: `folder` is where the machine's exchange is.
START = """
import json, os, sys, time
folder = next(word.split("path=")[1].split(",mount_tag=exchange")[0] for word in sys.argv if "mount_tag=exchange" in word)
def say(text):
    sys.stdout.write(text + "\\n")
    sys.stdout.flush()
"""
ANSWERS = """
say("ready")
for line in sys.stdin:
    job = json.loads(line)
    place = os.path.join(folder, str(job["id"]))
    os.makedirs(place + "/out/records")
    open(place + "/out/records/seen", "w").write(open(place + "/cell/plan.json").read())
    os.symlink("/etc/passwd", place + "/out/link")
    os.mkfifo(place + "/out/pipe")
    open(place + "/console.log", "w").write("from the console")
    say(json.dumps({"id": job["id"], "ended": "because", "returncode": 3}))
"""


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    """Folders for a machine, with a comma in their names."""
    at = tmp_path / "a,b"
    for name in ("kernel", "tools", "boot", "lab"):
        (at / name).mkdir(parents=True)
    return Parts(at / "bzImage", at / "kernel" / "linux", at / "tools", at / "boot", "first", at / "lab")


@pytest.fixture
def qemu(tmp_path: Path, monkeypatch):
    """Puts a script in QEMU's place."""

    def put(script: str) -> None:
        (tmp_path / "bin").mkdir(exist_ok=True)
        program = tmp_path / "bin" / machine_module.QEMU
        program.write_text(f"#!{sys.executable}\n{START}{script}")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")

    return put


@pytest.fixture
def machine(parts, qemu):
    """Starts a machine of a script."""
    with ExitStack() as machines:

        def start(script: str) -> Machine:
            qemu(script)
            made = Machine(parts, 512, None, False)
            machines.callback(made.close)
            return made

        yield start


@pytest.fixture
def asked(tmp_path, machine):
    """A machine of a script, the folder of the cell that it is asked for, and the cell."""

    def ask(script: str) -> tuple[Machine, CellFolder, MachineCell]:
        made, folder = machine(script), filled(tmp_path / "one")
        return made, folder, made.start(folder, job)

    return ask


def filled(path: Path) -> CellFolder:
    """A cell's folder with its input, and a lab program of its own."""
    folder = CellFolder(path, PLAN)
    folder.fill()
    (path / "lab").mkdir()
    return folder


def has_not_ended(pid: int) -> bool:
    """Whether a process runs; nobody may have waited for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def job(number: int) -> Job:
    """A job whose lab program is in the exchange."""
    return Job(id=number, boot="first", lab="", is_cell=False, memory_mib=64, wall_s=0.5, snapshots=True)


def test_a_cell_comes_back_with_its_files_and_nothing_but_files(tmp_path, machine):
    made = machine(ANSWERS)
    for name in ("one", "two"):
        folder = filled(tmp_path / name)
        cell = made.start(folder, job)

        assert (cell.wait(5), cell.said, cell.lost) == (3, "because", False)
        assert (folder.out.path / "records/seen").read_text() == (folder.inside / "plan.json").read_text()
        assert sorted(path.name for path in folder.out.path.iterdir()) == ["records"]
        assert folder.console.read_text() == "from the console"
    made.close()
    assert not made.is_alive


def test_the_longest_wall_limit_that_a_plan_may_have_can_be_waited_for(tmp_path, machine):
    cell = machine(ANSWERS).start(filled(tmp_path / "one"), lambda number: replace(job(number), wall_s=20 * LONGEST_S))
    assert cell.wait(LONGEST_S) == 3


def test_a_machine_that_runs_on_leads_to_no_file_of_the_host(tmp_path, machine):
    """It puts a link in the way of the next job, and one among its files when its pipe has gone: they were looked over."""
    private = tmp_path / "private"
    private.mkdir()
    (private / "private").write_text("of this machine")
    changes = f"""
    import threading
    def change(out=place + "/out"):
        while os.path.lexists(out + "/pipe"):
            pass
        os.symlink({str(private / "private")!r}, out + "/records/new")
    os.makedirs(place + "/out/many")
    for number in range(2000):
        open(place + "/out/many/" + str(number), "w").close()
    os.symlink({str(private)!r}, os.path.join(folder, "2"))
    threading.Thread(target=change, daemon=True).start()
    say(json"""
    made, folder = machine(ANSWERS.replace("\n    say(json", changes)), filled(tmp_path / "one")
    made.start(folder, job).wait(5)

    assert "of this machine" not in [path.read_text() for path in folder.out.path.rglob("*") if path.is_file()]
    with pytest.raises(OSError, match="Not a directory|File exists"):
        made.start(filled(tmp_path / "two"), job)
    assert [path.name for path in private.iterdir()] == ["private"]


def test_what_a_running_cell_says_is_heard_before_it_ends(tmp_path, asked):
    """Also what no lab says, by whoever listens, who is to read it as that of any lab; after the answer nothing is."""
    says = [f"say({text!r})" for text in ('\x1e{"source": "queue-hop", "t_s": 1}', "\x1enonsense")]
    hold = tmp_path / "go-on"
    waits = f"while not os.path.exists({str(hold)!r}):\n        time.sleep(0.01)"
    script = ANSWERS.replace("    say(json", f"    {'; '.join(says)}\n    {waits}\n    say(json")
    machine, folder, cell = asked(f"{script}    {says[0]}\n")
    ended = time.monotonic() + 10
    heard = b'\x1e{"source": "queue-hop", "t_s": 1}\n\x1enonsense\n'
    while not folder.console.exists() or folder.console.read_bytes() != heard:
        assert time.monotonic() < ended
        time.sleep(0.01)
    hold.touch()

    assert cell.wait(5) == 3
    assert folder.said() == b"from the console"
    while machine.is_alive:
        assert time.monotonic() < ended
        time.sleep(0.01)


@pytest.mark.parametrize(
    "says", ['say("nonsense")', 'say("{}")', 'say(json.dumps({"id": "x", "ended": 1, "returncode": 0}))', "sys.exit(1)"]
)
def test_a_machine_that_ends_or_says_what_none_says_is_lost(asked, says):
    last = 'print("last words", file=sys.stderr, flush=True)'
    made, folder, cell = asked(f'say("ready")\nsys.stdin.readline()\n{last}\n{says}\ntime.sleep(60)')
    cell.wait(5)

    assert (cell.lost, made.is_alive) == (True, False)
    assert "last words" in folder.console.read_text()


def test_a_machine_that_never_answers_or_never_comes_up_is_ended(asked, machine, tmp_path, monkeypatch):
    monkeypatch.setattr(machine_module, "GRACE_S", 0.1)
    _, _, cell = asked('say("ready")\nsys.stdin.readline()\ntime.sleep(60)')
    with pytest.raises(machine_module.subprocess.TimeoutExpired):
        cell.wait(5)
    cell.kill()
    assert (cell.wait(), cell.lost) == (-9, True)

    monkeypatch.setattr(machine_module, "START_LIMIT_S", 0.2)
    cell = machine("time.sleep(60)").start(filled(tmp_path / "two"), job)
    cell.wait(5)
    assert cell.lost


def test_where_kvm_starts_no_machine_the_next_ones_do_without(tmp_path, parts, qemu, monkeypatch):
    """In some virtual machines KVM makes a machine that never runs: its cell is lost, and runs again in the next one."""
    monkeypatch.setattr(machine_module, "ACCELERATED_START_LIMIT_S", 0.5)
    monkeypatch.setattr(machine_module, "is_accelerated", lambda: True)
    qemu(f'if "kvm" in sys.argv:\n    time.sleep(60)\n{ANSWERS}')
    said: list[str] = []
    machines = Machines(64, said.append)
    with machines.use(parts, None) as machine:
        cell = machine.start(filled(tmp_path / "one"), job)
        cell.wait(5)
    assert cell.lost
    with machines.use(parts, None) as machine:
        cell = machine.start(filled(tmp_path / "two"), job)
        assert (cell.wait(5), cell.lost) == (3, False)
    assert ["KVM started no machine" in text for text in said] == [True]
    machines.close()


def test_a_machine_that_has_not_come_up_ends_with_the_process_that_started_it(tmp_path, parts, qemu):
    """It does not look at its port yet."""
    qemu('signal = __import__("signal"); signal.signal(signal.SIGHUP, signal.SIG_IGN)\ntime.sleep(60)')
    folders = [str(path) for path in (parts.appliance, parts.kernel, parts.tools, parts.boot)]
    made = f"Machine(Parts(*map(Path, {folders}), 'first', Path({str(parts.lab)!r})), 64, None, False)"
    names = "from pathlib import Path; from scpslab.engine.appliance.machine import Machine, Parts"
    script = f"{names}; import os, signal; print({made}.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    pid = int(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False).stdout)
    ended = time.monotonic() + 10
    while has_not_ended(pid) and time.monotonic() < ended:
        time.sleep(0.05)
    assert not has_not_ended(pid)


def test_machines_are_kept_for_the_next_job_unless_they_have_ended(parts, qemu):
    qemu('say("ready")\nsys.stdin.readline()')
    machines = Machines(64, print)
    with machines.use(parts, None) as first:
        pass
    with machines.use(parts, None) as again, machines.use(parts, None) as beside:
        assert again is first
        assert beside is not first
        assert sorted(machines.processes) == sorted([first.pid, beside.pid])
        again.kill()
        again.wait(5)
    with machines.use(parts, None) as left:
        assert left is beside
    machines.close()
    assert machines.processes == []
    machines.stop()
    with machines.use(parts, None) as late:
        late.wait(5)
    assert machines.processes == []


def test_the_program_of_the_machine_needs_nothing_but_what_it_gets(tmp_path):
    """The guest image's Python has the standard library only."""
    copy_program(tmp_path)
    found = "import scpslab.engine.appliance.inside as inside; print(inside.__file__)"
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {found}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False)
    assert not done.stderr
    assert done.stdout.startswith(str(tmp_path))
