"""Workload `ftp`: a file by FTP over the kernel's TCP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from scpslab.plan.values import Ip, Period, Port, WholeSeed
from scpslab.plan.workloads import Transfer


@dataclass(frozen=True, kw_only=True)
class Ftp(Transfer):
    """A file by FTP. `get`: the receiving host has the client; `put`: the sending one."""

    kind: Literal["ftp"] = "ftp"
    command: Literal["get", "put"]
    mode: Literal["active", "passive"]
    port: Port
    payload_seed: WholeSeed
    patience_ns: Period
    server_ip: Ip

    @property
    def opener(self) -> str:
        """The client's host."""
        return self.to if self.command == "get" else self.from_

    @property
    def contacted_ip(self) -> str:
        """The server's address."""
        return self.server_ip


KIND = Ftp
