"""Workload `ftp`: a file by FTP over the kernel's TCP."""

from typing import Literal

from scpslab.plan.values import Ip, Period, Port, WholeSeed
from scpslab.plan.workloads import FileTransfer


class Ftp(FileTransfer, kind="ftp"):
    """A file by FTP. `get`: the receiving host has the client; `put`: the sending one."""

    kind: Literal["ftp"] = "ftp"
    command: Literal["get", "put"]
    mode: Literal["active", "passive"]
    port: Port
    payload_seed: WholeSeed
    timeout_ns: Period
    server_ip: Ip
