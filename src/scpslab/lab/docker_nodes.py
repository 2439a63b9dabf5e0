"""Mininet nodes that are Docker containers; what a node's image has to do is said in images/CONTRACT.md."""

from __future__ import annotations

import subprocess
from typing import Any

from scpslab.lab import bpf
from scpslab.lab.docker import Container
from scpslab.lab.nodes import FORWARDING, LabNode
from scpslab.lab.place import CGROUP, LABTOOL, WORK, WORK_OUTSIDE

SECOND_NS = 10**9
# labtool's programs that are roles of the contract, and its options that are the contract's variables.
ROLES = {"bulk-send": "send", "bulk-recv": "receive"}
VARIABLES = {"to": "SCPSLAB_PEER", "port": "SCPSLAB_PORT", "bytes": "SCPSLAB_BYTES", "payload-seed": "SCPSLAB_SEED"}


class DockerNode(LabNode):
    """A host in a container of an image of images/."""

    def __init__(self, name: str, container: dict[str, Any], **params: Any) -> None:
        self.spec = container
        super().__init__(name, **params)

    def startShell(self, mnopts: str | None = None) -> None:  # Mininet's name
        """Makes the container; the shell itself waits for its first use."""
        folders = {}
        for part, rights in (("in", ":ro"), ("out", "")):
            (WORK / "nodes" / self.name / part).mkdir(parents=True, exist_ok=True)
            folders[f"/lab/{part}{rights}"] = str(WORK_OUTSIDE / "nodes" / self.name / part)
        (WORK / "nodes" / self.name / "out").chmod(0o777)
        self.docker = Container(self.name, self.spec, folders)
        self.enter(self.docker.pid)
        # The name lets `ip -n NAME`, `tc -n NAME` and students find the node.
        subprocess.run(["ip", "netns", "attach", self.name, str(self.pid)], check=True, capture_output=True)

    def program(self, name: str) -> str:
        """A program of the lab, as the image has it."""
        return name

    def tool(self, tool: str, options: dict[str, str]) -> list[str]:
        """The command of one of labtool's programs: a role of the contract where it is one, done by the image's user."""
        if tool not in ROLES:
            return super().tool(tool, options)
        rest = dict(options)
        words = [f"SCPSLAB_ROLE={ROLES[tool]}", *(f"{variable}={rest.pop(key)}" for key, variable in VARIABLES.items() if key in rest)]
        words.append(f"SCPSLAB_PATIENCE_S={-(-int(rest.pop('patience-ns')) // SECOND_NS)}")
        words.append("SCPSLAB_OPTIONS=" + " ".join(f"--{key} {value}" for key, value in rest.items()))
        user = self.docker.user or "0"
        if "NET_ADMIN" not in self.spec["capabilities"]:
            return [LABTOOL, "exec", "--user", user, str(self.pid), "env", *words, "endpoint"]
        keep = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--inh-caps=+net_admin", "--ambient-caps=+net_admin"]
        return [*self.prefix, *keep, "env", *words, "endpoint"]

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
