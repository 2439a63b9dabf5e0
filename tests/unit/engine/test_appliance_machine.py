"""Machines of the appliance as the host sees them: jobs, answers and files; one that ends, hangs or says nonsense.

QEMU itself is a script here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from scpslab.core.errors import CapabilityError
from scpslab.engine.appliance import machine as machine_module
from scpslab.engine.appliance import native
from scpslab.engine.appliance.machine import (
    Job,
    Machine,
    MachineCell,
    Machines,
    Parts,
    command,
    copy_program,
    find_qemu,
)
from scpslab.engine.cell_folder import CellFolder
from scpslab.engine.findings import judge_appliance
from scpslab.engine.uml import no_network

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
    for name in ("kernel", "tools", "boot", "lab"):
        (tmp_path / "a,b" / name).mkdir(parents=True)
    at = tmp_path / "a,b"
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
def asked(tmp_path, parts, qemu):
    """A machine of a script, the folder of the cell that it is asked for, and the cell."""
    machines = []

    def ask(script: str) -> tuple[Machine, CellFolder, MachineCell]:
        qemu(script)
        machines.append(Machine(parts, 512, None, False))
        folder = filled(tmp_path / "one")
        return machines[0], folder, machines[0].start(folder, job)

    yield ask
    machines[0].close()


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


def test_a_cell_comes_back_with_its_files_and_nothing_but_files(tmp_path, parts, qemu):
    qemu(ANSWERS)
    machine = Machine(parts, 512, None, False)
    for name in ("one", "two"):
        folder = filled(tmp_path / name)
        cell = machine.start(folder, job)

        assert (cell.wait(5), cell.said, cell.lost) == (3, "because", False)
        assert (folder.out.path / "records/seen").read_text() == (folder.inside / "plan.json").read_text()
        assert sorted(path.name for path in folder.out.path.iterdir()) == ["records"]
        assert folder.console.read_text() == "from the console"
    machine.close()
    assert not machine.is_alive


def test_a_machine_that_runs_on_leads_to_no_file_of_the_host(tmp_path, parts, qemu):
    """It puts a link in the way of the next job, and one among its files as soon as it sees that they were looked over:
    its pipe has gone.
    """
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
    qemu(ANSWERS.replace("\n    say(json", changes))
    machine = Machine(parts, 512, None, False)
    folder = filled(tmp_path / "one")
    machine.start(folder, job).wait(5)

    assert "of this machine" not in [path.read_text() for path in folder.out.path.rglob("*") if path.is_file()]
    with pytest.raises(OSError, match="Not a directory|File exists"):
        machine.start(filled(tmp_path / "two"), job)
    assert [path.name for path in private.iterdir()] == ["private"]
    machine.close()


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
    machine, folder, cell = asked(f'say("ready")\nsys.stdin.readline()\n{last}\n{says}\ntime.sleep(60)')
    cell.wait(5)

    assert (cell.lost, machine.is_alive) == (True, False)
    assert "last words" in folder.console.read_text()


def test_a_machine_that_never_answers_is_ended(asked, monkeypatch):
    monkeypatch.setattr(machine_module, "GRACE_S", 0.1)
    _, _, cell = asked('say("ready")\nsys.stdin.readline()\ntime.sleep(60)')
    with pytest.raises(machine_module.subprocess.TimeoutExpired):
        cell.wait(5)
    cell.kill()

    assert (cell.wait(), cell.lost) == (-9, True)


def test_a_machine_that_never_comes_up_is_ended(asked, monkeypatch):
    monkeypatch.setattr(machine_module, "START_LIMIT_S", 0.2)
    _, _, cell = asked("time.sleep(60)")
    cell.wait(5)

    assert cell.lost


def test_where_kvm_starts_no_machine_the_next_ones_do_without(tmp_path, parts, qemu, monkeypatch):
    """In some virtual machines KVM makes a machine that never runs.

    The cell is lost, and runs again in the next machine.
    """
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


def test_the_machine_gets_nothing_of_the_host_but_named_folders(parts, qemu, tmp_path):
    qemu("")
    words = command(parts, tmp_path / "a,b", 512, False)
    shares = [word for word in words if "mount_tag=" in word]

    names = [word.split("mount_tag=")[1].split(",")[0] for word in shares]
    assert names == ["boot", "lab", "kernel", "tools", "program", "exchange"]
    assert [word for word in shares if "readonly=on" not in word] == [shares[-1]]
    assert all("a,,b" in word for word in shares)
    assert not {"-netdev", "-drive", "-hda", "-nic"} & set(words)


def test_the_program_of_the_machine_needs_nothing_but_what_it_gets(tmp_path):
    """The guest image's Python has the standard library only."""
    copy_program(tmp_path)
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import scpslab.engine.appliance.inside as inside; "
        "print(inside.__file__)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False)
    assert not done.stderr
    assert done.stdout.startswith(str(tmp_path))


def test_no_qemu_is_an_error_that_says_what_to_install(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CapabilityError, match="apt-get install qemu-system-x86"):
        find_qemu()


def test_the_appliance_is_for_other_machines_and_for_those_that_forbid_ptrace(monkeypatch):
    monkeypatch.delenv(native.VARIABLE, raising=False)
    monkeypatch.setattr(native, "may_trace", lambda: 1)
    monkeypatch.setattr(native.platform, "machine", lambda: "x86_64")
    assert native.trouble() == "ptrace is refused (Operation not permitted)"
    monkeypatch.setattr(native, "may_trace", lambda: 0)
    assert not native.trouble()
    monkeypatch.setenv(native.VARIABLE, "1")
    assert "asks for it" in native.trouble()
    monkeypatch.setattr(native.platform, "machine", lambda: "aarch64")
    monkeypatch.delenv(native.VARIABLE)
    assert "Linux aarch64" in native.trouble()


def test_kvm_is_used_only_where_it_makes_a_machine(tmp_path, monkeypatch):
    device = tmp_path / "kvm"
    assert not machine_module.can_virtualise(device)
    device.write_bytes(b"no device")
    machine_module.can_virtualise.cache_clear()
    assert not machine_module.can_virtualise(device)
    machine_module.can_virtualise.cache_clear()
    monkeypatch.setattr(machine_module.fcntl, "ioctl", lambda *_: os.dup(0))
    assert machine_module.can_virtualise(device)
    monkeypatch.setattr(machine_module, "KVM", device)
    monkeypatch.setattr(machine_module.platform, "machine", lambda: "x86_64")
    monkeypatch.setenv(native.VARIABLE, native.FORCED)
    assert machine_module.is_accelerated()
    monkeypatch.setenv(native.VARIABLE, native.EMULATED)
    assert not machine_module.is_accelerated()


@pytest.mark.parametrize(
    ("why", "has_qemu", "accelerated", "state", "found"),
    [
        ("", False, False, "ok", "not needed"),
        ("no ptrace", False, False, "missing", "no ptrace, and there is no qemu-system-x86_64"),
        ("no ptrace", True, False, "warning", "10 to 20 times slower, with the same bytes"),
        ("no ptrace", True, True, "warning", "KVM"),
    ],
)
def test_doctor_says_whether_cells_run_in_the_appliance(why, has_qemu, accelerated, state, found):
    finding = judge_appliance(why, has_qemu, accelerated)
    assert finding.state == state
    assert found in finding.found
    assert replace(finding, state="ok").name == "appliance"
