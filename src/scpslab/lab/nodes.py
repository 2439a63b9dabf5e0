"""Mininet nodes that are containers: own mount, PID, network and UTS namespaces, private /etc, /var, /run and /tmp.

A node's shell starts when somebody types into it, not before: a cell without a person needs none.
"""

import os
import pty
import select
import subprocess
import termios
from codecs import getincrementaldecoder
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mininet.node import Node

from scpslab.core.names import file_name
from scpslab.lab.docker import Container
from scpslab.lab.loop import SECOND_NS
from scpslab.lab.netlink import from_anywhere, inside, without_ipv6
from scpslab.lab.place import CGROUP, IS_ALONE, LABTOOL, PROGRAMS, VIRTUAL, WORK, WORK_OUTSIDE
from scpslab.plan import nodes as planned

# The prompt of a node's shell, by which Mininet knows that a command has ended.
END_OF_COMMAND = chr(127)
LATE_BYTES = 1 << 20
# What somebody typed while a command ran, and the command did not read, is no command for the shell.
DROP_TYPED = "while read -t 0 && read -r; do :; done"
NO_REDIRECTS = {f"net.ipv4.conf.{which}.send_redirects": "0" for which in ("all", "default")}
FORWARDING = {"net.ipv4.ip_forward": "1", **NO_REDIRECTS}


class LabNode(Node):  # type: ignore[misc]  # Mininet has no types
    """A host: `popen` runs a program inside, `cmd` types into its shell as in any Mininet node."""

    # In a guest, random numbers come from the cell's seed and not from the processor, and the clock is read in a page.
    exec_options: tuple[str, ...] = ("--preload", VIRTUAL) if IS_ALONE else ()

    def startShell(self, mnopts: str | None = None) -> None:  # Mininet's name
        """Makes the container; the shell itself waits for its first use."""
        self.container = subprocess.Popen([LABTOOL, "node", self.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.container.stdout is not None
        line = self.container.stdout.readline()
        if not line.strip():
            raise OSError(
                f"node {self.name}: its container did not start (labtool node exited with {self.container.wait()})"
            )
        self.enter(int(line))

    def enter(self, pid: int) -> None:
        """Takes over the container whose first process is `pid`."""
        self.pid = pid
        self.prefix = [LABTOOL, "exec", *self.exec_options, str(pid)]
        with inside(pid):
            without_ipv6()
            from_anywhere()

    def open_shell(self) -> None:
        """Starts the node's shell."""
        # In a session of its own with this terminal: otherwise the terminal could not interrupt the shell's commands.
        command = ["setsid", "--ctty", *self.prefix, "env", "PS1=" + END_OF_COMMAND, "bash", "--norc", "--noediting"]
        command += ["-is", "mininet:" + self.name]
        self.master, self.slave = pty.openpty()
        self.shell = subprocess.Popen(command, stdin=self.slave, stdout=self.slave, stderr=self.slave)
        self.stdin = os.fdopen(self.master, "r")
        self.stdout = self.stdin
        self.decoder = getincrementaldecoder("utf-8")()
        self.pollOut = select.poll()
        self.pollOut.register(self.stdout)
        self.outToNode[self.stdout.fileno()] = self
        self.inToNode[self.stdin.fileno()] = self
        self.waiting = False
        self.readbuf = ""
        while not self.read(1024).endswith(END_OF_COMMAND):
            self.pollOut.poll()
        super().cmd(f"export -n PS1; unset HISTFILE; stty -echo; set +m; PROMPT_COMMAND='{DROP_TYPED}'")

    def sendCmd(self, *args: Any, **kwargs: Any) -> None:  # Mininet's name
        """Types a command into the node's shell."""
        if self.shell is None:
            self.open_shell()
        self.late_output()
        termios.tcflush(self.slave, termios.TCIFLUSH)
        super().sendCmd(*args, **kwargs)

    def cmd(self, *args: Any, **kwargs: Any) -> Any:
        """Types a command into the node's shell and returns what it printed."""
        if self.shell is None:
            self.open_shell()
        return super().cmd(*args, **kwargs)

    def late_output(self) -> str:
        """What the shell printed after its last command had ended: the output of commands that still run."""
        output = ""
        # A program that writes without an end writes into the next command's output.
        while self.shell is not None and len(output) < LATE_BYTES and select.select([self.stdout], [], [], 0)[0]:
            output += self.read(1024)
        return output.replace(END_OF_COMMAND, "")

    def popen(self, *args: Any, **kwargs: Any) -> subprocess.Popen[bytes]:
        """Starts a program inside the node."""
        kwargs.setdefault("mncmd", self.prefix)
        process: subprocess.Popen[bytes] = super().popen(*args, **kwargs)
        return process

    def start(self, argv: list[str], **kwargs: Any) -> subprocess.Popen[bytes]:
        """Starts a program inside the node with plain arguments (no shell, no pipes unless asked for)."""
        return subprocess.Popen([*self.prefix, *argv], **kwargs)

    def program(self, name: str) -> str:
        """A program of the lab (`labtool`, `scps`), or a library to preload, as a command inside the node names it."""
        return str(PROGRAMS / name)

    def tool(self, tool: str, options: dict[str, str]) -> list[str]:
        """The whole command that runs one of labtool's programs inside."""
        words = [word for key, value in options.items() for word in (f"--{key}", value)]
        return [*self.prefix, self.program("labtool"), tool, *words]

    def config(self, **_params: Any) -> dict[str, str]:
        """Nothing is left to configure: links come with addresses, the plan with routes and settings."""
        return {}

    def join(self, attach: Callable[[str], None]) -> None:
        """Has the programs of sockets run for the node: it is in the lab's control group already."""

    def sysctls(self, settings: dict[str, str]) -> None:
        """Writes kernel settings of the node's network namespace.

        Raises:
            OSError: the kernel refused one; the name and value are in the message.
        """
        with inside(self.pid):
            for name, value in settings.items():
                path = Path("/proc/sys") / name.replace(".", "/")
                try:
                    path.write_text(value + "\n")
                except OSError as error:
                    raise OSError(error.errno, f"node {self.name}: {name} = {value}: {error.strerror}") from error

    def know(self, addresses: dict[str, str]) -> None:
        """Lets programs find the nodes of the network by their names."""
        # A link of somebody's image would lead out of the container, so none is followed.
        folder = os.open(Path(f"/proc/{self.pid}/root", "etc"), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            file = os.open("hosts", os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW, dir_fd=folder)
        finally:
            os.close(folder)
        with os.fdopen(file, "w") as hosts:
            hosts.writelines(f"{ip}\t{name}\n" for name, ip in addresses.items())

    def close_shell(self) -> None:
        """Ends the shell, if there is one."""
        if self.shell is not None:
            self.stdin.close()
            os.close(self.slave)
            self.shell.kill()
            self.shell.wait()
            self.shell = None  # type: ignore[assignment]  # Mininet tells a closed shell by it

    def terminate(self) -> None:
        """Ends the container and everything in it."""
        self.close_shell()
        assert self.container.stdin is not None
        self.container.stdin.close()
        self.container.wait()


class LabRouter(LabNode):
    """A node that forwards IPv4."""

    def startShell(self, mnopts: str | None = None) -> None:  # Mininet's name
        """Makes the container and lets it forward."""
        super().startShell(mnopts)
        self.sysctls(FORWARDING)


# Docker's default for images without one.
DEFAULT_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The programs of labtool that correspond to roles of the contract, and its options that correspond to variables of the
# contract.
ROLES = {"bulk-send": "send", "bulk-recv": "receive"}
VARIABLES = {"to": "SCPSLAB_PEER", "port": "SCPSLAB_PORT", "bytes": "SCPSLAB_BYTES", "payload-seed": "SCPSLAB_SEED"}


class DockerNode(LabNode):
    """A host in a Docker container; images/CONTRACT.md says what a node's image must do."""

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
        """The command of one of labtool's programs: a role of the contract where it is one, done by the image's
        user.
        """
        if tool not in ROLES:
            return super().tool(tool, options)
        rest = dict(options)
        variables = {variable: rest.pop(key) for key, variable in VARIABLES.items() if key in rest}
        variables["SCPSLAB_PATIENCE_S"] = str(-(-int(rest.pop("patience-ns")) // SECOND_NS))
        variables["SCPSLAB_OPTIONS"] = " ".join(f"--{key} {value}" for key, value in rest.items())
        return self.role(ROLES[tool], variables)

    def role(self, role: str, variables: dict[str, str]) -> list[str]:
        """The command that does a role of the contract in the container."""
        return self.as_user(["endpoint"], {"SCPSLAB_ROLE": role, **variables})

    def as_user(self, command: list[str], variables: dict[str, str]) -> list[str]:
        """A command that runs in the container as the image's user, with the image's environment."""
        words = [DEFAULT_PATH, *self.docker.environment, *(f"{name}={value}" for name, value in variables.items())]
        user = self.docker.user or "0"
        if "NET_ADMIN" not in self.spec.capabilities:
            return ["env", "--ignore-environment", *words, LABTOOL, "exec", "--user", user, str(self.pid), *command]
        keep = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        keep += ["--inh-caps=+net_admin", "--ambient-caps=+net_admin"]
        return ["env", "--ignore-environment", *words, *self.prefix, *keep, *command]

    def join(self, attach: Callable[[str], None]) -> None:
        """Attaches the programs of sockets to the container's control group, unless it is in the lab's."""
        with open(f"/proc/{self.pid}/cgroup") as groups:
            group = next(line.strip().partition("::")[2] for line in groups if line.startswith("0::"))
        folder = f"/sys/fs/cgroup{group}"
        if not folder.startswith(f"{CGROUP}/"):
            attach(folder)

    def terminate(self) -> None:
        """Removes the container and everything in it."""
        self.close_shell()
        subprocess.run(["ip", "netns", "delete", self.name], check=False, capture_output=True)
        self.docker.remove()


class ImageNode(DockerNode):
    """A host in an image of somebody else's."""

    def start(self, argv: list[str], **kwargs: Any) -> subprocess.Popen[bytes]:
        """Starts a program of the image as its user, with its environment."""
        return subprocess.Popen(self.as_user(argv, {}), **kwargs)


class DockerRouter(LabRouter, DockerNode):
    """A container that forwards IPv4."""
