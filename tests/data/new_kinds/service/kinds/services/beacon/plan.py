"""A beacon's settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from scpslab.plan.nodes import Host
from scpslab.plan.services import SERVICES, Daemon
from scpslab.plan.values import Period


@dataclass(frozen=True, kw_only=True)
class Beacon(Daemon):
    """It counts its flashes."""

    kind: Literal["beacon"] = "beacon"
    interval_ns: Period

    RUNS_ON: ClassVar = (Host,)
    writes_record: ClassVar[bool] = True


SERVICES.register("beacon", Beacon)
