"""Metrics: one small file a family, one line in FAMILIES. The order here is the order of the columns."""

from typing import Any

from scpslab.results.metrics import bulk, congestion, endpoint, fp, ftp, iperf3, losses, ping, serial, shape, wire
from scpslab.results.metrics.base import Column, Family, Subject, Value

FAMILIES: tuple[Family[Any], ...] = (
    bulk.FAMILY,
    wire.FAMILY,
    shape.FAMILY,
    endpoint.FAMILY,
    ftp.FAMILY,
    fp.FAMILY,
    iperf3.FAMILY,
    ping.FAMILY,
    congestion.FAMILY,
)

__all__ = ["FAMILIES", "Column", "Family", "Subject", "Value", "losses", "serial"]
