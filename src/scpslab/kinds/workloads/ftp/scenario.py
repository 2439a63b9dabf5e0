"""Kind `ftp`: a file by FTP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from scpslab.core.problems import Problem
from scpslab.documents.parts import key
from scpslab.documents.quantities import Port, PositiveDuration, Size
from scpslab.scenario.workloads import MODE, REQUIRED, Setting, Surroundings, Transfer, gateways_fit, timeout_key


class Ftp(Transfer, kind="ftp"):
    """A file by FTP, with vsftpd and curl; the client reports the time (as in the NMSU papers)."""

    kind: Literal["ftp"] = key(says="The kind of workload.", example="ftp")
    size: Size = key(says="Bytes of the file.", example="100 kB")
    command: Literal["get", "put"] = key(
        "get", says="get: the client runs on the receiving host; put: it runs on the sending host.", example="put"
    )
    mode: Literal["active", "passive"] = MODE
    port: Port = key(21, says="TCP port of the control connection.", example=21)
    timeout: PositiveDuration = timeout_key("900 s")
    required: bool = REQUIRED

    @property
    def is_unmodified(self) -> bool:
        """Always."""
        return True

    def serves(self) -> tuple[str, int]:
        """The server is where the client is not."""
        return self.receiver if self.command == "put" else self.sender, self.port

    def problems(self, around: Surroundings) -> Iterator[Problem]:
        """What does not fit."""
        yield from gateways_fit(self, "ftp", around)
        yield from super().problems(around)

    def derived(self, setting: Setting) -> Mapping[str, object]:
        """The server is where the client is not."""
        server = self.to if self.command == "put" else self.from_
        return {**super().derived(setting), "server_ip": setting.addresses[server]}
