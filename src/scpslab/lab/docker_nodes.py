"""Mininet nodes that are Docker containers; images/CONTRACT.md says what a node's image must do."""

from __future__ import annotations

import subprocess
from typing import Any

from scpslab.core.names import file_name
from scpslab.lab import bpf
from scpslab.lab.docker import Container
from scpslab.lab.nodes import FORWARDING, LabNode
from scpslab.lab.place import CGROUP, LABTOOL, WORK, WORK_OUTSIDE
from scpslab.plan import nodes as planned

SECOND_NS = 10**9
# Docker's default for images without one.
DEFAULT_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The programs of labtool that correspond to roles of the contract, and its options that correspond to variables of the contract.
ROLES = {"bulk-send": "send", "bulk-recv": "receive"}
VARIABLES = {"to": "SCPSLAB_PEER", "port": "SCPSLAB_PORT", "bytes": "SCPSLAB_BYTES", "payload-seed": "SCPSLAB_SEED"}


class DockerNode(LabNode):
    """A host in a container."""

    # An image has its own programs, and no folder of the lab's.
    exec_options = ()

    def __init__(self, name: str, container: planned.Container, **params: Any) -> None:
        self.spec = container
        super().__init__(name, **params)

    def startShell(self, mnopts: str | None = None) -> None:  # Mininet's name
        """Makes the container; the shell itself waits for its first use."""
        folders = {}
        for part, rights in (("in", ":ro"), ("out", "")):
            (WORK / "nodes" / file_name(self.name) / part).mkdir(parents=True, exist_ok=True)
            folders[f"/lab/{part}{rights}"] = str(WORK_OUTSIDE / "nodes" / file_name(self.name) / part)
        (WORK / "nodes" / file_name(self.name) / "out").chmod(0o777)
        self.docker = Container(self.name, self.spec, folders)
        self.enter(self.docker.pid)
        # The name lets `ip -n NAME`, `tc -n NAME` and students find the node.
        subprocess.run(["ip", "netns", "attach", self.name, str(self.pid)], check=True, capture_output=True)

    def program(self, name: str) -> str:
        """A program or library of the lab, as the image has it."""
        return name

    def tool(self, tool: str, options: dict[str, str]) -> list[str]:
        """The command of one of labtool's programs: a role of the contract where it is one, done by the image's user."""
        if tool not in ROLES:
            return super().tool(tool, options)
        rest = dict(options)
        variables = {variable: rest.pop(key) for key, variable in VARIABLES.items() if key in rest}
        variables["SCPSLAB_PATIENCE_S"] = str(-(-int(rest.pop("patience-ns")) // SECOND_NS))
        variables["SCPSLAB_OPTIONS"] = " ".join(f"--{key} {value}" for key, value in rest.items())
        return self.role(ROLES[tool], variables)

    def role(self, role: str, variables: dict[str, str]) -> list[str]:
        """The command that does a role of the contract in the container: as the image's user, with the image's environment."""
        words = [DEFAULT_PATH, *self.docker.environment, f"SCPSLAB_ROLE={role}", *(f"{name}={value}" for name, value in variables.items())]
        user = self.docker.user or "0"
        if "NET_ADMIN" not in self.spec.capabilities:
            return ["env", "--ignore-environment", *words, LABTOOL, "exec", "--user", user, str(self.pid), "endpoint"]
        keep = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--inh-caps=+net_admin", "--ambient-caps=+net_admin"]
        return ["env", "--ignore-environment", *words, *self.prefix, *keep, "endpoint"]

    def join(self, program: int) -> None:
        """Attaches a socket program to the container's control group, unless it is in the lab's."""
        with open(f"/proc/{self.pid}/cgroup") as groups:
            group = next(line.strip().partition("::")[2] for line in groups if line.startswith("0::"))
        folder = f"/sys/fs/cgroup{group}"
        if not folder.startswith(f"{CGROUP}/"):
            bpf.attach_to_cgroup(program, folder)

    def terminate(self) -> None:
        """Removes the container and everything in it."""
        self.close_shell()
        subprocess.run(["ip", "netns", "delete", self.name], check=False, capture_output=True)
        self.docker.remove()


class DockerRouter(DockerNode):
    """A container that forwards IPv4."""

    def startShell(self, mnopts: str | None = None) -> None:  # Mininet's name
        """Makes the container and lets it forward."""
        super().startShell(mnopts)
        self.sysctls(FORWARDING)
