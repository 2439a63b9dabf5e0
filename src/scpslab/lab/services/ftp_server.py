"""vsftpd on a node: one anonymous user who may store files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scpslab.lab.loop import Loop
from scpslab.lab.services.base import Service, listens

if TYPE_CHECKING:
    from scpslab.lab.network import LabNetwork

# One process. What it waits for is as patient as the workload.
SETTINGS = """listen=YES
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
accept_timeout={patience}
connect_timeout={patience}
data_connection_timeout={patience}
idle_session_timeout={patience}
"""


class FtpServer(Service):
    """It serves the folder `root` of its node at a port, and waits `patience_s` for a client's next word."""

    what = "vsftpd"

    def __init__(self, name: str, node: str, network: LabNetwork, loop: Loop, *, root: str, port: int, patience_s: int) -> None:
        super().__init__(name, node, network, loop)
        self.root, self.port, self.patience_s = root, port, patience_s

    def prepare(self) -> None:
        """Writes its settings, and makes the empty folder that it asks for."""
        empty = f"{self.root}-empty"
        self.network.inside(self.node, empty).mkdir()
        settings = SETTINGS.format(port=self.port, root=self.root, empty=empty, patience=self.patience_s)
        self.network.inside(self.node, f"{self.root}.conf").write_text(settings)

    def argv(self) -> list[str]:
        """The server, with its settings."""
        return ["vsftpd", f"{self.root}.conf"]

    def is_ready(self) -> bool:
        """Whether it accepts connections."""
        return listens(self.network.pid(self.node) or 0, self.port)
