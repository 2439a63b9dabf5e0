"""A file by FTP over the kernel's TCP: vsftpd on one node, curl on the other, timed as the client reports it."""

from __future__ import annotations

import hashlib
import json
import random

from scpslab.core.addresses import end
from scpslab.lab.services import Service, listens
from scpslab.lab.workloads import Workload

from scpslab.kinds.workloads.ftp import plan as planned

# One process. What it waits for is as patient as the workload.
SETTINGS = """{listen}=YES
background=NO
listen_port={port}
anonymous_enable=YES
no_anon_password=YES
anon_root={root}
write_enable=YES
anon_upload_enable=YES
anon_umask=022
one_process_model=YES
seccomp_sandbox=NO
port_enable=YES
pasv_enable=YES
connect_from_port_20=YES
xferlog_enable=NO
secure_chroot_dir={empty}
accept_timeout={timeout}
connect_timeout={timeout}
data_connection_timeout={timeout}
idle_session_timeout={timeout}
"""


class FtpServer(Service):
    """It serves the folder of a transfer at its port, and waits for a client's next word as long as the transfer."""

    what = "vsftpd"

    def __init__(self, transfer: Ftp, timeout_s: int) -> None:
        super().__init__(transfer.name, transfer.server, transfer.network, transfer.context.loop)
        self.transfer = transfer
        self.root, self.port, self.timeout_s = transfer.folder, transfer.spec.port, timeout_s

    def prepare(self) -> None:
        """Writes its settings, and makes the empty folder that it asks for."""
        empty = f"{self.root}-empty"
        self.network.inside(self.node, empty).mkdir()
        listen = "listen_ipv6" if self.transfer.is_ipv6 else "listen"
        settings = SETTINGS.format(listen=listen, port=self.port, root=self.root, empty=empty, timeout=self.timeout_s)
        self.network.inside(self.node, f"{self.root}.conf").write_text(settings)

    def argv(self) -> list[str]:
        """The server, with its settings."""
        return ["vsftpd", f"{self.root}.conf"]

    def is_ready(self) -> bool:
        """Whether it accepts connections."""
        return listens(self.network.pid(self.node) or 0, "tcp", self.port)


FILE = "files/file.bin"  # vsftpd refuses a root that its user may write to, so files are one folder further down
# What curl reports of itself, in seconds since its start (curl(1), --write-out), under the names of the record.
TIMES = {
    "time_connect": "connected_s",
    "time_pretransfer": "before_transfer_s",
    "time_starttransfer": "first_byte_s",
    "time_total": "total_s",
}


class Ftp(Workload[planned.Ftp], kind="ftp"):
    """`put`: the sending host has the client; `get`: the receiving one."""

    @property
    def is_ipv6(self) -> bool:
        """Whether its addresses are those of IPv6."""
        return ":" in self.spec.server_ip

    def prepare(self) -> None:
        """Writes the file, starts the server and waits until it listens."""
        spec = self.spec
        self.client, self.server = (spec.from_, spec.to) if spec.command == "put" else (spec.to, spec.from_)
        self.text: list[str] = []
        self.data = random.Random(spec.payload_seed).randbytes(spec.bytes_)  # noqa: S311  # content, no secret
        self.folders = {node: self.network.inside(node, self.folder) for node in (self.client, self.server)}
        for folder in self.folders.values():
            files = (folder / FILE).parent
            files.mkdir(parents=True)
            files.chmod(0o777)
        (self.folders[spec.from_] / FILE).write_bytes(self.data)
        self.timeout_s = -(-spec.timeout_ns // 10**9)
        self.serve(FtpServer(self, self.timeout_s))

    def start(self) -> None:
        """Starts the client and the clock of its timeout."""
        spec = self.spec
        local, url = f"{self.folder}/{FILE}", f"ftp://{end(spec.server_ip, spec.port)}/{FILE}"
        argv = ["curl", "--silent", "--show-error", "--write-out", "%{json}\n", "--ftp-method", "nocwd"]
        argv += ["--connect-timeout", str(self.timeout_s)]
        # EPRT and EPSV (RFC 2428) are for IPv6 alone here.
        older = [] if self.is_ipv6 else ["--disable-eprt" if spec.mode == "active" else "--disable-epsv"]
        argv += ["--ftp-port", "-", *older] if spec.mode == "active" else ["--ftp-pasv", *older]
        argv += ["--upload-file", local, url] if spec.command == "put" else ["--output", local, url]
        self.start_t_s = self.context.epoch.now_s()
        self.timeouts_before = self.kernel_timeouts(spec.from_)
        self.run(self.client, argv, self.text.append, self._client_exit)
        self.give_up_after(spec.timeout_ns)

    def _client_exit(self, code: int) -> None:
        end_t_s = self.context.epoch.now_s()
        try:
            report = json.loads("".join(self.text))
        except ValueError:
            report = {}
        arrived = self._arrived()
        times = {name: report.get(key) for key, name in TIMES.items()}
        self.records.write(
            event="client",
            command=self.spec.command,
            start_t_s=self.start_t_s,
            end_t_s=end_t_s,
            exit_code=code,
            bytes=report.get("size_upload" if self.spec.command == "put" else "size_download"),
            **times,
            error=report.get("errormsg"),
        )
        self.records.write(
            event="file",
            bytes=len(arrived),
            sha256=hashlib.sha256(arrived).hexdigest(),
            sent_sha256=hashlib.sha256(self.data).hexdigest(),
        )
        self.records.write(event="sender", rtos=self.kernel_timeouts(self.spec.from_) - self.timeouts_before)
        if code:
            self.fail(f"curl exit code {code}: {report.get('errormsg') or 'it was ended'}")
        elif arrived != self.data:
            found, expected = f"{len(arrived)} bytes that differ from those sent", f"{self.spec.bytes_} bytes as sent"
            self.fail(f"found {found}; expected {expected}")
        else:
            self.finish("completed")
        self.stop()

    def _arrived(self) -> bytes:
        path = self.folders[self.spec.to] / FILE
        return path.read_bytes() if path.exists() else b""
