"""A beacon's settings."""

from __future__ import annotations

from typing import ClassVar, Literal

from scpslab.plan.nodes import Host
from scpslab.plan.services import Daemon
from scpslab.plan.values import Period


class Beacon(Daemon, kind="beacon"):
    """It counts its flashes."""

    kind: Literal["beacon"] = "beacon"
    interval_ns: Period

    RUNS_ON: ClassVar = (Host,)
    writes_record: ClassVar[bool] = True
