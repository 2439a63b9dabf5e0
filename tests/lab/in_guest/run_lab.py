"""Runs inside a guest that plays the machine of engine `host`: runs labs, kills their makers at seeded points, and
looks what is left.

/opt/scpslab has this file, `source` (the project's Python code) and `programs` (a lab program's folder). /cell has
plan-*.json and job.json. Standard library only.
"""

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, "/opt/scpslab/source")
from scpslab.engine.hostlab import ALLOWED, CGROUPS, dead_labs, labs, remove
from scpslab.lab import docker

PROGRAMS = Path("/var/lib/scpslab/programs")
MAKER = """
import sys
from pathlib import Path
sys.path.insert(0, "/opt/scpslab/source")
from scpslab import plan as plans
from scpslab.engine.hostlab import HostLab, remove
lab = HostLab(plans.parse(Path(sys.argv[1], "plan.json").read_bytes()), Path(sys.argv[2]), Path(sys.argv[1]))
code = lab.start().wait()
remove(lab.id)
sys.exit(code)
"""
OUT = Path("/cell/out")
SETTLE_LIMIT_S = 100.0


def maker(plan):
    """A process that runs a lab; and the folder of its cell."""
    folder = Path("/tmp/cells", str(time.monotonic_ns()))
    (folder / "vectors").mkdir(parents=True)
    shutil.copyfile(f"/cell/plan-{plan}.json", folder / "plan.json")
    return subprocess.Popen([sys.executable, "-c", MAKER, str(folder), str(PROGRAMS)], stdin=subprocess.DEVNULL), folder


def words(command):
    """What a command prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def machine(with_docker):
    """Everything on this machine that a lab could leave something among."""
    processes = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            except OSError:
                continue
            if command:
                processes[folder.name] = command
    return {
        "processes": processes,
        "links": words(["ip", "-o", "link"]),
        "namespaces": words(["ip", "netns", "list"]),
        "mounts": sorted(line.split(" ", 3)[3] for line in Path("/proc/self/mountinfo").read_text().splitlines()),
        "groups": sorted(str(path) for path in CGROUPS.rglob("*") if path.is_dir()),
        "containers": sorted(entry["Names"][0] for entry in docker.ask("GET", "/containers/json?all=1"))
        if with_docker
        else [],
        "labs": labs(),
        "allowed": ALLOWED.read_text(),
        "programs": sorted(str(path) for path in PROGRAMS.parent.iterdir()),
    }


def strangers(with_docker):
    """Things that are not the lab's, under names that look as if they were."""
    for command in (
        ["ip", "netns", "add", "h1"],
        ["ip", "link", "add", "h1-hop", "type", "dummy"],
        ["mkdir", "/sys/fs/cgroup/scpslab-1-1-1"],
    ):
        subprocess.run(command, check=True)
    process = subprocess.Popen(["sleep", "100000"], executable="/usr/bin/sleep")
    Path("/sys/fs/cgroup/scpslab-1-1-1/cgroup.procs").write_text(f"{process.pid}\n")
    if with_docker:
        image = json.loads(Path("/cell/plan-docker.json").read_text())["network"]["nodes"][0]["container"]["image"]
        labels = {docker.LABEL: "scpslab-1-1-1"}
        found = docker.ask(
            "POST",
            "/containers/create?name=scpslab-1-1-1-h1",
            {"Image": image, "Labels": labels, "HostConfig": {"NetworkMode": "none"}},
        )
        docker.ask("POST", f"/containers/{found['Id']}/start")


def whole_lab(plan):
    """Runs a lab to its end: its status, how long it took, what its workload recorded."""
    started = time.monotonic()
    process, folder = maker(plan)
    code = process.wait()
    taken_s = time.monotonic() - started
    status = json.loads((folder / "out/status.json").read_text())
    records = {
        file.stem: [json.loads(line) for line in file.read_text().splitlines()]
        for file in (folder / "out/records").glob("*.jsonl")
    }
    logs = (
        {file.name: file.read_text(errors="replace")[-2000:] for file in (folder / "out/logs").iterdir()}
        if status["status"] != "completed"
        else {}
    )
    shutil.rmtree(folder)
    return {"plan": plan, "code": code, "taken_s": taken_s, "status": status, "records": records, "logs": logs}


def differences(before, with_docker):
    """What differs from before, once containerd's shims of containers that are gone have ended too."""
    limit = time.monotonic() + SETTLE_LIMIT_S
    while True:
        after = machine(with_docker)
        differs = {key: [before[key], after[key]] for key in before if before[key] != after[key]}
        if not differs or time.monotonic() > limit:
            return differs
        time.sleep(0.2)


def settled(with_docker):
    """The machine once nothing on it changes by itself."""
    while True:
        before = machine(with_docker)
        time.sleep(1.0)
        if machine(with_docker) == before:
            return before


def killed_lab(plan, after_s, before, with_docker):
    """Kills a lab's maker, removes what is left of the lab, and says what differs from before."""
    process, folder = maker(plan)
    time.sleep(after_s)
    process.send_signal(signal.SIGKILL)
    process.wait()
    left = dead_labs()
    removed = [remove(lab) for lab in left]
    shutil.rmtree(folder)
    return {"plan": plan, "after_s": after_s, "removed": removed, "differs": differences(before, with_docker)}


def main():
    """Does the job and writes what it saw."""
    job = json.loads(Path("/cell/job.json").read_text())
    OUT.mkdir(exist_ok=True)
    PROGRAMS.parent.mkdir()
    shutil.copytree("/opt/scpslab/programs", PROGRAMS)
    logs = Path("/tmp/logs")
    logs.mkdir()
    daemon = None
    if with_docker := "docker" in job["plans"]:
        daemon = docker.Daemon(logs)
        daemon.wait()
    strangers(with_docker)
    before = settled(with_docker)
    whole = [whole_lab(plan) for plan in job["plans"]]
    draw = random.Random(job["seed"])
    # Labs that ended by themselves have left nothing either.
    killed = [{"plan": "whole", "removed": [], "differs": differences(before, with_docker)}]
    for number in range(job["kills"]):
        lab = whole[number % len(whole)]
        killed.append(killed_lab(lab["plan"], draw.random() * lab["taken_s"], before, with_docker))
    (OUT / "result.json").write_text(json.dumps({"whole": whole, "killed": killed}))


try:
    main()
except BaseException:
    import traceback

    OUT.mkdir(exist_ok=True)
    (OUT / "error.txt").write_text(traceback.format_exc())
