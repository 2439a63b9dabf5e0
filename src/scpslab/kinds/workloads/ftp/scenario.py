"""Kind `ftp`: a file by FTP."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from scpslab.documents.parts import key
from scpslab.documents.quantities import Port, PositiveDuration, Size
from scpslab.scenario.workloads import MODE, REQUIRED, Setting, Transfer, timeout_key


class Ftp(Transfer, kind="ftp"):
    """A file by FTP, with vsftpd and curl; the client reports the time (as in the NMSU papers).

    Attributes:
        kind: The kind of workload.
        size: Bytes of the file.
        command: get: the client runs on the receiving host; put: it runs on the sending host.
        port: TCP port of the control connection.
    """

    unmodified: ClassVar[str] = "ftp"

    kind: Literal["ftp"] = key(example="ftp")
    size: Size = key(example="100 kB")
    command: Literal["get", "put"] = key("get", example="put")
    mode: Literal["active", "passive"] = MODE
    port: Port = key(21, example=21)
    timeout: PositiveDuration = timeout_key("900 s")
    required: bool = REQUIRED

    def serves(self) -> tuple[str, int]:
        """The server is where the client is not."""
        return self.receiver if self.command == "put" else self.sender, self.port

    def derived(self, setting: Setting) -> Mapping[str, object]:
        """The server is where the client is not."""
        server = self.to if self.command == "put" else self.from_
        return {**super().derived(setting), "server_ip": setting.addresses[server]}
