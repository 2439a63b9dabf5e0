"""Kind `beacon`: a made-up service that flashes."""

from __future__ import annotations

from typing import Literal

from scpslab.documents.parts import key
from scpslab.documents.quantities import Name, PositiveDuration
from scpslab.scenario.services import Service


class Beacon(Service, kind="beacon"):
    """beacon: a light that flashes."""

    kind: Literal["beacon"] = key(says="The kind of service.", example="beacon")
    name: Name = key(says="Name, and that of its record.", example="light")
    node: Name = key(says="Host.", example="h2")
    interval: PositiveDuration = key("1 s", says="Time between two flashes.", example="1 s")
