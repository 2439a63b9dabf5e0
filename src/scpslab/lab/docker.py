"""Docker Engine for the lab: containers through its HTTP interface (version 1.41), and in a guest the daemon itself."""

import http.client
import json
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from scpslab.lab.place import CELL, LAB_ID
from scpslab.plan import nodes as planned

SOCKET = Path("/var/run/docker.sock")
VERSION = "v1.41"
LABEL = "org.scpslab.lab"
# The images of nodes, if the guest contains them (setup/docker.py).
ARCHIVE = Path("/usr/share/scpslab/nodes.tar")
# Images of the plan that do not belong to the project.
BROUGHT_ALONG = CELL / "images"
# No bridge and no filters: a node's interfaces are the lab's business alone.
DAEMON = [
    *("dockerd", "--iptables=false", "--ip6tables=false", "--bridge=none", "--userland-proxy=false"),
    *("--storage-driver=overlay2", "--exec-opt=native.cgroupdriver=cgroupfs"),
]
DAEMON_LIMIT_S = 120.0
REQUEST_LIMIT_S = 300.0
LOOK_AGAIN_S = 0.01


class DockerError(OSError):
    """Docker refused; the message is Docker's. `status` is the HTTP status, 0 if there was no answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class DaemonConnection(http.client.HTTPConnection):
    """HTTP over the daemon's socket."""

    def __init__(self) -> None:
        super().__init__("docker", timeout=REQUEST_LIMIT_S)

    def connect(self) -> None:
        """Connects to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(REQUEST_LIMIT_S)
        self.sock.connect(str(SOCKET))


def ask(method: str, path: str, body: Any = None) -> Any:
    """One request; `body` is sent as JSON, or unchanged if it is a file. Returns the JSON of the answer.

    Raises:
        DockerError: the daemon refused, or does not run.
    """
    connection = DaemonConnection()
    try:
        if body is None or isinstance(body, dict):
            connection.request(
                method, f"/{VERSION}{path}", json.dumps(body or {}), {"Content-Type": "application/json"}
            )
        else:
            size = os.fstat(body.fileno()).st_size
            connection.request(
                method, f"/{VERSION}{path}", body, {"Content-Type": "application/x-tar", "Content-Length": str(size)}
            )
        answer = connection.getresponse()
        text = answer.read()
    except OSError as error:
        raise DockerError(f"docker: {error.strerror or error}") from error
    finally:
        connection.close()
    if answer.status >= http.client.BAD_REQUEST:
        message = json.loads(text).get("message", "") if text[:1] == b"{" else text.decode(errors="replace")
        raise DockerError(f"docker: {message or answer.reason}", answer.status)
    return json.loads(text) if text[:1] in (b"{", b"[") and b"\n{" not in text else None


def answers() -> bool:
    """Whether a daemon answers."""
    try:
        ask("GET", "/version")
    except DockerError:
        return False
    return True


class Daemon:
    """The lab's own dockerd in a guest, whose containers end with the guest.

    If a daemon runs already, the lab uses that one.
    """

    def __init__(self, logs: Path) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        if answers():
            return
        data = Path("/var/lib/docker")
        data.mkdir(parents=True, exist_ok=True)
        # Layers of containers cannot lie on the overlay that the guest's root is.
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(data)], check=True)
        with (logs / "dockerd.log").open("wb") as log:
            # The guest has one processor (setup/docker.py says why that has to be said).
            environment = os.environ | {"GOMAXPROCS": "1"}
            self.process = subprocess.Popen(
                [*DAEMON, f"--host=unix://{SOCKET}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )

    def wait(self) -> None:
        """Waits until the daemon answers, and gives it the images.

        Raises:
            ChildProcessError: it ended.
            TimeoutError: it does not within DAEMON_LIMIT_S.
        """
        if self.process is None:
            return
        limit = time.monotonic() + DAEMON_LIMIT_S
        while not (SOCKET.exists() and answers()):
            if self.process.poll() is not None:
                raise ChildProcessError(
                    f"dockerd: found that it ended with code {self.process.returncode}; expected it to run. "
                    "See logs/dockerd.log"
                )
            if time.monotonic() > limit:
                raise TimeoutError(
                    f"dockerd: found no answer within {DAEMON_LIMIT_S:.0f} s; expected one. See logs/dockerd.log"
                )
            time.sleep(LOOK_AGAIN_S)
        for path in (ARCHIVE, *sorted(BROUGHT_ALONG.glob("*.tar"))):
            with path.open("rb") as archive:
                ask("POST", "/images/load?quiet=1", archive)


class Container:
    """A container without a network of Docker's, from its start to `remove`."""

    def __init__(self, node: str, spec: planned.Container, folders: dict[str, str]) -> None:
        """`spec`: the plan's `container` of a node.

        `folders`: paths in the container to paths as the daemon sees them (":ro" may follow).
        """
        host = {
            "NetworkMode": "none",
            "Init": True,
            "Memory": spec.memory_bytes,
            "PidsLimit": spec.pids,
            "CapAdd": spec.capabilities,
            "Devices": [
                {"PathOnHost": path, "PathInContainer": path, "CgroupPermissions": "rw"} for path in spec.devices
            ],
            "Binds": [f"{outside}:{inside}" for inside, outside in folders.items()],
        }
        wanted = {
            "Image": spec.image,
            "Hostname": node,
            "Labels": {LABEL: LAB_ID},
            "Healthcheck": {"Test": ["NONE"]},
            "HostConfig": host,
        }
        self.id: str = ask("POST", f"/containers/create?name={LAB_ID}-{node}", wanted)["Id"]
        ask("POST", f"/containers/{self.id}/start")
        facts = ask("GET", f"/containers/{self.id}/json")
        self.pid: int = facts["State"]["Pid"]
        self.user: str = facts["Config"]["User"].partition(":")[0]
        self.environment: list[str] = facts["Config"]["Env"] or []

    def remove(self) -> None:
        """Ends and removes it."""
        remove(self.id)


def remove(container: str) -> None:
    """Ends and removes a container. A container that is gone, or is being removed, is not an error.

    Raises:
        DockerError: the daemon refused, or does not run.
    """
    try:
        ask("DELETE", f"/containers/{container}?force=1&v=1")
    except DockerError as error:
        if error.status not in (http.client.NOT_FOUND, http.client.CONFLICT):
            raise
