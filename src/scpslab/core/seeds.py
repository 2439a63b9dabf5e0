"""Seeds derived by name: every consumer of randomness has a stream of its own, so that adding one shifts no other (ADR
0010).
"""

import hashlib
import json

# A stream keeps the name with which it began: another one moves every draw. Error models and their keys by today's
# words; then the two directions of links, by topology and link (ANY: every other link).
BEGAN_AS = {"packet": "packet-loss", "good_to_bad_per_bit": "p_good_bad", "bad_to_good_per_bit": "p_bad_good"}
ANY = "*"
DIRECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "fy97": {"hop": ("data", "ack"), ANY: ("out", "in")},
    "fy97_np": {"modem": ("data", "ack"), ANY: ("out", "in")},
    "gateway": {"hop": ("data", "ack"), ANY: ("up", "down")},
    "one_way_satellite": {"sat": ("data", "unused"), ANY: ("data", "ack")},
    "point_to_point": {ANY: ("data", "ack")},
    "sgls": {ANY: ("data", "ack")},
    "shared_router": {ANY: ("data", "ack")},
    "star": {ANY: ("data", "ack")},
}


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
