"""The door for topology files: what a file of a user or of an archive imports to describe a network."""

from scpslab.plan.topology import (
    Direction,
    Link,
    Network,
    Node,
    Parameter,
    Parameters,
    Queue,
    Serial,
    count,
    duration,
    rate,
    size,
)

__all__ = [
    "Direction",
    "Link",
    "Network",
    "Node",
    "Parameter",
    "Parameters",
    "Queue",
    "Serial",
    "count",
    "duration",
    "rate",
    "size",
]
