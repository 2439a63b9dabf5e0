"""Engine `host`: this machine's own kernel, as root, on the wall clock; nodes are processes or this machine's Docker
containers.
"""

import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from scpslab.core.contents import digest_of
from scpslab.core.errors import CapabilityError, LabError
from scpslab.core.folders import whole_folder
from scpslab.engine.base import Finding, Needs, own_images
from scpslab.engine.bundle import copy_programs, sources
from scpslab.engine.cell_folder import CellFolder
from scpslab.engine.console import SessionConsole
from scpslab.engine.hostlab import CGROUPS, PATH, PYTHON, HostLab, dead_labs, remove
from scpslab.engine.process import ProcessEngine
from scpslab.lab import docker
from scpslab.plan import Plan
from scpslab.setup import Say, ensure_stack, ensure_tools, trust
from scpslab.setup.own_images import find_image

# Not under a folder that each node has for itself (/run, /tmp, /mnt).
PROGRAMS = Path("/var/lib/scpslab")
PROGRAM = "run_lab.py"


class HostEngine(ProcessEngine):
    """Runs a cell as a lab of this machine (scpslab.engine.hostlab). Results are measurements, not reproductions."""

    name: ClassVar[str] = "host"
    summary: ClassVar[str] = "wall clock, this machine's kernel, root"
    deterministic: ClassVar[bool] = False
    interactive: ClassVar[bool] = True
    reach: ClassVar[str] = "a scenario's commands run as root of this machine and can change all of it"
    lab_name: ClassVar[str] = "the lab program"

    def __init__(self, *, snapshots: bool = True) -> None:
        super().__init__(snapshots=snapshots)
        self._programs: dict[bool, Path] = {}

    def prepare(self, say: Say, plans: Iterable[Plan]) -> None:
        """Checks the machine, removes the remains of killed labs, builds the lab's programs."""
        plans = list(plans)
        lacking = missing(with_docker=any(Needs.of(plan).docker for plan in plans))
        if lacking:
            raise CapabilityError("\n".join(map(_lack_text, lacking)))
        own = {name for plan in plans for name in own_images(plan)}
        for name in own:
            find_image(name)
        _check_images(
            {node.container.image for plan in plans for node in plan.network.speaking if node.container} - own
        )
        for lab in dead_labs():
            say(f"engine host: removed {', '.join(remove(lab)) or 'the folder'} of lab {lab}, whose process was killed")
        for with_stack in {Needs.of(plan).stack for plan in plans}:
            self._programs[with_stack] = _install(say, with_stack)

    def findings(self) -> list[Finding]:
        """One finding if everything is there, otherwise one for each thing that is missing."""
        lacking = missing(with_docker=True)
        if not lacking:
            return [Finding("engine host", "ok", "kernel, programs and Docker")]
        return [replace(lack, name=f"engine host: {lack.name}") for lack in lacking]

    def hash(self, plan: Plan) -> str:
        """Hash of the lab program and the programs beside it."""
        return self._programs[Needs.of(plan).stack].name

    @contextmanager
    def lab(
        self, folder: CellFolder, core: int | None = None, console: SessionConsole | None = None
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A lab of this machine, removed at the end. It uses all cores."""
        lab = HostLab(folder.plan, self._programs[Needs.of(folder.plan).stack], folder.inside)
        try:
            if console:
                yield lab.start(console.kind, stdin=console.input, stdout=console.output)
            else:
                with folder.console.open("wb") as output:
                    process = lab.start(
                        stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
                    )
                yield process
        finally:
            remove(lab.id)


def _lack_text(lack: Finding) -> str:
    found, expected = f"found {lack.found}", f"expected {lack.name} as engine host needs it"
    return f"engine host: {lack.name}: {found}; {expected}. To fix it: {lack.fix}."


def _check_images(images: set[str]) -> None:
    """Checks that the machine's Docker has the images of nodes."""
    known = (
        {name for image in docker.ask("GET", "/images/json") for name in image["RepoTags"] or []} if images else set()
    )
    if lacking := sorted(images - known):
        raise CapabilityError(
            f"engine host: found no image {', '.join(lacking)} in this machine's Docker; "
            "expected every image that the plan names. Run: make docker-images."
        )


def _install(say: Say, with_stack: bool) -> Path:
    """The lab program's folder for this machine, made where it is missing."""
    tools = ensure_tools(say)
    programs = [*sorted(tools.iterdir()), *([ensure_stack(say, platform.machine()).path] if with_stack else [])]
    target = PROGRAMS / digest_of([*sources(), *((file, file.name) for file in programs)])[:24]
    try:
        return trust.check(whole_folder(target, lambda folder: copy_programs(folder, programs)) / PROGRAM).parent
    except OSError as error:
        raise LabError(
            f"{target}: found {error.strerror}; expected a folder that root may write to. "
            "Free disk space there, or correct its permissions."
        ) from error


NEEDED_PROGRAMS = (
    *("ip", "tc", "unshare", "setpriv", "mount", "tcpdump", "iperf3"),
    *("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-dpctl"),
)
OTHER_KERNEL = "use another kernel: the virtual machine that vagrant up makes has one (docs/vagrant.md)"
PLAYBOOK = "ansible-playbook -i localhost, -c local playbooks/site.yml"
IMPORT_MININET = "import sys; sys.path.append('/usr/lib/python3/dist-packages'); import mininet.net"


def missing(with_docker: bool) -> list[Finding]:
    """What this machine lacks, by trying. Without root only root is reported, because the other checks need it."""
    if os.geteuid():
        return [Finding("root", "missing", f"user id {os.geteuid()}", "sudo scpslab …")]
    return [Finding(name, "missing", found, fix) for name, found, fix in _lacking(with_docker)]


def _lacking(with_docker: bool) -> Iterator[tuple[str, str, str]]:
    if programs := [name for name in NEEDED_PROGRAMS if not _has(name)]:
        yield "programs", "no " + ", ".join(programs), PLAYBOOK
    words = [PYTHON, "-S", "-E", "-c", IMPORT_MININET]
    if not Path(PYTHON).exists() or subprocess.run(words, capture_output=True, check=False).returncode:
        yield "mininet", f"no Mininet for {PYTHON}", PLAYBOOK
    # Version 2 ends all processes of a lab at once.
    if not (CGROUPS / "cgroup.controllers").exists():
        fix = f"start the machine with systemd.unified_cgroup_hierarchy=1, or {OTHER_KERNEL}"
        yield "control groups", f"no control groups of version 2 at {CGROUPS}", fix
    filters = "tc qdisc add dev lo clsact"
    tried = {
        "veth": "ip link add name v0 type veth peer name v1",
        "sch_netem": "tc qdisc add dev lo root netem delay 1ms",
        "sch_fq": "tc qdisc add dev lo root fq",
        "sch_ingress": filters,
        "cls_bpf": f"{filters}; tc filter add dev lo egress bpf bytecode '1,6 0 0 0' direct-action",
        # Without its programs, at least whether there is such a module.
        "openvswitch": "ovs-dpctl dump-dps" if _has("ovs-dpctl") else "modprobe --dry-run openvswitch",
    }
    for module, script in tried.items():
        # A missing program has been reported.
        if _has(script.split(maxsplit=1)[0]) and (said := _in_a_namespace(script)):
            yield module, f'"{said}" when it was tried', f"modprobe {module}, or {OTHER_KERNEL}"
    if with_docker and not docker.answers():
        yield "docker", f"no Docker Engine that answers at {docker.SOCKET}", f"start it, or: {PLAYBOOK}"


def _has(program: str) -> bool:
    return shutil.which(program, path=PATH) is not None


def _in_a_namespace(script: str) -> str:
    """Runs a script in a network namespace of its own. Returns "" if it works, else its last line of output."""
    words = ["unshare", "--net", "sh", "-ec", script]
    done = subprocess.run(words, capture_output=True, text=True, env={"PATH": PATH}, check=False)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


KIND = HostEngine
