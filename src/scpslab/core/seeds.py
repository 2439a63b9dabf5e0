"""Seeds derived by name: every consumer of randomness has a stream of its own, so that adding one shifts no other (ADR
0010).
"""

from __future__ import annotations

import hashlib
import json


def stream(root: int, *names: object) -> str:
    """64 hex digits for the stream of that name under a scenario's seed."""
    text = json.dumps([root, *[str(name) for name in names]])
    return hashlib.sha256(text.encode()).hexdigest()


def uniform(seed: str, count: int) -> list[float]:
    """`count` numbers in [0, 1], by hashing: the same for ever, on every machine and with every library."""
    return [
        int.from_bytes(hashlib.sha256(f"{seed}/{index}".encode()).digest()[:8], "big") * 2.0**-64
        for index in range(count)
    ]
