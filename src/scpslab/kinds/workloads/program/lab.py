"""A file by a server and a client of anybody's: the lab writes it, measures the time and compares what arrived."""

import gzip
import hashlib
import os
import random
import shlex
import shutil
import stat
from io import BufferedReader
from pathlib import Path

from scpslab.core.names import file_name
from scpslab.lab.context import Context
from scpslab.lab.loop import SECOND_NS
from scpslab.lab.place import VIRTUAL
from scpslab.lab.services import ending
from scpslab.lab.shell import Ready, Shell
from scpslab.lab.workloads import Workload

from scpslab.kinds.workloads.program import plan as planned

# What is kept of a file, so that no cell fills a disk.
KEPT_BYTES, BLOCK_BYTES = 64 << 20, 1 << 20
# How often the lab looks for a file that arrives behind the end of its client: at least so often, and after so much
# of the time that has passed since.
LOOK_NS, LOOK_SHARE = SECOND_NS // 100, 1000


class Program(Workload[planned.Program], kind="program"):
    """Completed when the client has ended with the expected code and the file has arrived whole."""

    def __init__(self, spec: planned.Program, context: Context) -> None:
        super().__init__(spec, context)
        # Its folders by node, and each held open: what a program puts in its place later is not followed.
        self.made: dict[str, Path] = {}
        self.held: dict[str, int] = {}
        self.client_code: int | None = None
        # Size and time of the file that was looked at last, and its hash.
        self.looked_at: tuple[int, int] = (0, 0)
        self.arrived_sha256 = ""

    def prepare(self) -> None:
        """Writes the file, starts the server and waits until it is ready."""
        spec = self.spec
        data = random.Random(spec.payload_seed).randbytes(spec.bytes_)  # noqa: S311  # content, no secret
        self.sent_sha256 = hashlib.sha256(data).hexdigest()
        for node in (spec.from_, spec.to):
            folder = self.made[node] = self.network.inside(node, self.folder)
            folder.mkdir()
            folder.chmod(0o777)
            self.held[node] = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        (self.made[spec.from_] / planned.FILE).write_bytes(data)
        asked = planned.filled(spec.ready_command, spec.words) if spec.ready_command else None
        self.server = self._shell(spec.server_node, spec.server, Ready(spec.ready_port, spec.ready_udp, asked))
        self.server.on_end = self._server_ended
        self.serve(self.server)
        # From now on its end is for this workload to judge.
        self.server.is_ending = True
        self.context.rest(spec.settle_ns)

    def _shell(self, node: str, command: str, ready: Ready) -> Shell:
        words = [f"cd {shlex.quote(self.folder)}"]
        if self.spec.pace_bps is not None and node == self.spec.from_:
            library = self.network.node(node).program("pace.so")
            preloaded = f"{VIRTUAL}:{library}" if self.network.node(node).exec_options else library
            words += [f"export LD_PRELOAD={preloaded} SCPSLAB_PACE_BPS={self.spec.pace_bps}"]
        text = "\n".join([*words, planned.filled(command, self.spec.words)])
        return Shell(self.name, node, self.network, self.context.loop, text, ready)

    def start(self) -> None:
        """Starts the client and the clock of its timeout."""
        if self.outcome:
            return
        self.start_ns = self.context.now_ns()
        client = self._shell(self.spec.opener, self.spec.client, Ready())
        client.is_ending, client.on_end = True, self._client_ended
        self.serve(client, wait=False)
        self.give_up_after(self.spec.timeout_ns)

    def _client_ended(self, code: int) -> None:
        t_s = self.context.epoch.t_s
        self.client_code, self.ended_ns = code, self.context.now_ns()
        self.records.write(event="client", start_t_s=t_s(self.start_ns), end_t_s=t_s(self.ended_ns), exit_code=code)
        if code != (self.spec.expect or 0):
            self.fail(f"the client ended with {ending(code)} in place of {self.spec.expect or 0}", self.spec.opener)
            self.stop()
            return
        self._look()

    def _server_ended(self, code: int) -> None:
        self.records.write(event="server", end_t_s=self.context.epoch.now_s(), exit_code=code)
        if not self.outcome and code and self.client_code is None:
            self.fail(f"the server ended with {ending(code)} before the client", self.server.node)
            self.stop()

    def _look(self) -> None:
        """Ends the workload if the file is there; else looks again where somebody may still write it."""
        if self.outcome:
            return
        size = self._look_at()
        if self.arrived_sha256 == self.sent_sha256:
            self._tell_file(size)
            self.finish("completed")
            self.stop()
        elif self.spec.opener == self.spec.to or self.server.exit_code is not None:
            self._tell_file(size)
            found = "no file" if size is None else f"{size} bytes that differ from those sent"
            self.fail(f"found {found} in {self.spec.words['out']}; expected {self.spec.bytes_} bytes as sent")
            self.stop()
        else:
            now_ns = self.context.now_ns()
            self.context.loop.at(now_ns + max(LOOK_NS, (now_ns - self.ended_ns) // LOOK_SHARE), self._look)

    def _look_at(self) -> int | None:
        """The size of the file that has arrived, None without one; it is read where it has changed."""
        file = self._opened(self.spec.to, planned.FILE)
        if file is None:
            return None
        with file:
            about = os.fstat(file.fileno())
            if self.looked_at != (looked_at := (about.st_size, about.st_mtime_ns)) and about.st_size:
                self.arrived_sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            self.looked_at = looked_at
        return about.st_size

    def _tell_file(self, size: int | None) -> None:
        t_s, sha256 = self.context.epoch.now_s(), self.arrived_sha256 or None
        self.records.write(event="file", t_s=t_s, bytes=size, sha256=sha256, sent_sha256=self.sent_sha256)

    def _opened(self, node: str, name: str) -> BufferedReader | None:
        """An ordinary file in the workload's folder of a node; None without one."""
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self.held[node])
        except OSError:
            return None
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            return None
        return os.fdopen(fd, "rb")

    def give_up(self) -> None:
        """Says how far it came."""
        if not self.outcome:
            self._tell_file(self._look_at())
        super().give_up()

    def stop(self) -> None:
        """Asks both to end."""
        super().close()

    def close(self) -> None:
        """Takes what is kept, when nothing is under way any more."""
        super().close()
        while self.held:
            node = next(iter(self.held))
            for name in self.spec.keep:
                self._keep(node, name)
            os.close(self.held.pop(node))
            shutil.rmtree(self.made[node], ignore_errors=True)

    def _keep(self, node: str, name: str) -> None:
        file = self._opened(node, name)
        if file is None:
            return
        target = self.context.folders.logs / file_name(self.name, node, name, suffix=".gz")
        with file, target.open("wb") as raw, gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as packed:
            left = KEPT_BYTES
            while left and (block := file.read(min(BLOCK_BYTES, left))):
                packed.write(block)
                left -= len(block)
            size = os.fstat(file.fileno()).st_size
        self.records.write(event="kept", node=node, file=name, bytes=size, kept_bytes=min(size, KEPT_BYTES))
