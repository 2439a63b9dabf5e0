"""A serial link of the plan in the words of the programs that make it: `scps channel` and pppd."""

from __future__ import annotations

from pathlib import Path

from scpslab.core.names import file_name
from scpslab.plan import schema
from scpslab.plan.cell import CellPlan
from scpslab.plan.error_models import Errors
from scpslab.plan.serial_links import SerialDirection, SerialLink

SECOND_NS = 10**9
PPP_FLAG = 0x7E
# The channel hands frames on whole: all but their last bytes are late by at most this many byte times, the end of a frame never is.
GRAIN_BYTES = 256
LEAST_LCP_RESTART_S = 3
# Header, frame check and flags of PPP's longest frame of the set-up, with every character escaped.
SET_UP_FRAME_BYTES = 200


def channel_options(plan: SerialLink, errors_from: Path) -> list[str]:
    """Options of `scps channel` for a serial link of the plan; what goes wrong it takes from a file when the epoch begins."""
    options = ["--hold", "--errors-from", str(errors_from)]
    shared = f"bits={plan.bits_per_byte},buffer={plan.buffer_bytes},period={plan.vector_bits},grain={GRAIN_BYTES},flush={PPP_FLAG:#x}"
    options += ["--both", shared]
    for direction, option in zip(plan.directions, ("--a-to-b", "--b-to-a"), strict=True):
        options += [option, f"baud={direction.rate_bps},delay-ms={direction.delay_ns / 10**6:.6f}"]
    return options


def channel_errors(plan: SerialLink, cell: CellPlan, vectors: Path) -> str:
    """The file that `scps channel` takes errors and outages from; vector files are in the folder `vectors`."""
    both = [(direction, cell.errors(plan.name, direction.name)) for direction in plan.directions]
    seeds = [errors.seed for _, errors in both if errors]
    # 48 bits of it; the two directions draw from streams of their own.
    lines = [f"seed={int(seeds[0][:12], 16) if seeds else 0}"]
    for (direction, errors), name in zip(both, ("a-to-b", "b-to-a"), strict=True):
        if errors is not None:
            words = [f"outage={start / 10**9:.9f}..{end / 10**9:.9f}" for start, end in errors.outages]
            words += error_words(errors, vectors / file_name(plan.name, direction.name, suffix=".bits"))
            lines.append(f"{name} {','.join(words)}")
    return "\n".join(lines) + "\n"


def error_words(errors: Errors, vector: Path) -> list[str]:
    """The plan's error model in the channel's words; one that the channel does not know is in the bit map `vector`."""
    names = errors.settings.CHANNEL
    if names is None:
        return ["errors=file", f"file={vector}"]
    return [f"errors={errors.model}", *(f"{names[name]}={value!r}" for name, value in schema.write(errors.settings).items())] if names else []


def crossing_ns(plan: SerialLink, direction: SerialDirection) -> int:
    """How long the longest frame takes over a direction, every character of it escaped, and a second more, ns."""
    longest_bits = 2 * plan.mtu_bytes * plan.bits_per_byte
    return int(SECOND_NS + direction.delay_ns + longest_bits * SECOND_NS // direction.rate_bps)


def pppd_options(plan: SerialLink, index: int) -> list[str]:
    """Options of pppd for end `index` of a serial link. Nothing comes from its files but what the command line does not say."""
    first, second, ppp = plan.ends[index].ip, plan.ends[1 - index].ip, plan.ppp
    assert first is not None
    assert second is not None
    assert ppp is not None
    own, other = (ip.split("/")[0] for ip in (first, second))
    # A request and its answer must fit between two tries, or the set-up never ends.
    slowest = min(direction.rate_bps for direction in plan.directions)
    round_trip_s = sum(direction.delay_ns for direction in plan.directions) / SECOND_NS + 2 * SET_UP_FRAME_BYTES * plan.bits_per_byte / slowest
    restart = str(max(LEAST_LCP_RESTART_S, 1 + int(round_trip_s)))
    mru = str(ppp.mru_bytes)
    return [
        *("nodetach", "local", "nocrtscts", "nolock", "noauth", "noipv6", "nodefaultroute", "noproxyarp", "nopersist"),
        # Compression of data would hide what the papers measure; only headers may be compressed.
        *("noccp", "nobsdcomp", "nodeflate", *(() if ppp.header_compression else ("novj",))),
        *("mru", mru, "mtu", mru, "asyncmap", f"{ppp.asyncmap:x}"),
        *("lcp-restart", restart, "ipcp-restart", restart, "lcp-max-configure", "100", "ipcp-max-configure", "100"),
        # The line is up for as long as the cell; a burst of errors must not end it.
        *("lcp-echo-interval", "0", "lcp-echo-failure", "0"),
        f"{own}:{other}",
    ]
