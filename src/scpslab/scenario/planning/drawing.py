"""A drawing of a network (SVG): nodes and links, from the first workload's sender on the left to its receiver on the
right; below it a table of the links that have a rate or a delay, and one of the workloads.

The same plans give the same bytes. What a person has of their own is called by its name (`your rate`).
"""

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate, pairwise

from scpslab.core import units
from scpslab.plan import Plan
from scpslab.plan.disciplines import DEFAULT, OneProduct, Queue
from scpslab.plan.flows import columns_of, path_of
from scpslab.plan.links import Direction, Link
from scpslab.plan.nodes import Host, Switch
from scpslab.plan.paths import Hop
from scpslab.plan.serial_links import SerialLink
from scpslab.plan.workloads import Traffic
from scpslab.scenario.planning.flows import NOTHING, link_texts

WIDTH, MARGIN, ROW, LINE = 720, 14, 62, 17
BOX, WIDEST, PILL = 40, 96, 24
LETTER = 7.3
# Nothing on earth is so far away.
SATELLITE_NS = 100_000_000
MOST_IN_A_COLUMN = 4
MOST_NAMED = 3
# Heads of the two tables, with the letters that fit into each column.
LINKS = {"link": 13, "direction": 19, "rate": 15, "delay": 15, "queue": 15, "errors": 17}
TRAFFIC = {"workload": 13, "direction": 19, "kind": 15, "begins": 15, "sends": 15, "segment": 17}
STACKS = {"kernel": "TCP", "scps": "SCPS"}
GATEWAY = "gateway"
ROUTERS = {"router": "router", "scps-router": "SCPS-NP", "switch": "LAN"}
STYLE = """
text { fill: #222; font-size: 13px } .head { fill: #666; font-size: 12px } .yours { fill: #b3261e; font-style: italic }
.card { fill: #fff; stroke: #ccc } .line { stroke: #888; stroke-width: 2; fill: none } .serial { stroke-dasharray: 6 4 }
.node { fill: #e8eaf6; stroke: #3f51b5; stroke-width: 2 } .pill { fill: #fff; stroke: #3f51b5 } .sat { fill: #3f51b5 }
@media (prefers-color-scheme: dark) {
text { fill: #e4e4e4 } .head { fill: #aaa } .yours { fill: #ffb4a9 } .card { fill: #1e1f26; stroke: #444 }
.node { fill: #2b3056; stroke: #9fa8da } .pill { fill: #1e1f26; stroke: #9fa8da } .sat { fill: #9fa8da } }
"""
YOURS = "your "
# What a queue holds that follows its link.
PRODUCT = "one BDP"
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Own:
    """What a person has of their own: the values that it may have, in words, and the plans with another one."""

    values: str
    plans: Sequence[Plan]


def drawing(title: str, plans: Sequence[Plan], own: Mapping[str, Own] | None = None) -> str:
    """The network of a scenario's cells, which all have the same nodes and links."""
    known = own or {}
    facts = _Facts(plans, known)
    sketch, height = _sketch(plans, facts)
    links, below = _table(LINKS, list(_link_rows(plans, facts)), height + 10)
    traffic, below = _table(TRAFFIC, list(_traffic_rows(plans, facts)), below + 12)
    notes = [f"{YOURS}{name}: {known[name].values}" for name in known if name in facts.used]
    if notes:
        words = textwrap.wrap("; ".join(notes), 98)
        traffic += [_text(MARGIN, below + LINE * number + 20, line, "yours") for number, line in enumerate(words)]
        below += LINE * len(words) + 14
    said = "; ".join(" ".join(row) for row in (*_link_rows(plans, facts), *_traffic_rows(plans, facts)))
    card = f'<rect class="card" x="1" y="1" width="{WIDTH - 2}" height="{below + 4}" rx="10"/>'
    top = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {below + 6}" width="{WIDTH}" '
        'font-family="DejaVu Sans, Verdana, sans-serif" role="img" aria-labelledby="t d">'
    )
    names = f'<title id="t">{escape(title)}</title>\n<desc id="d">{escape(said)}</desc>'
    return "\n".join([top, names, f"<style>{STYLE}</style>", card, *sketch, *links, *traffic, "</svg>", ""])


class _Facts:
    """The words for each property of nodes, links and workloads, over all cells and all own values."""

    def __init__(self, plans: Sequence[Plan], own: Mapping[str, Own]) -> None:
        self.used: set[str] = set()
        others = {name: [dict(_facts(plan)) for plan in one.plans] for name, one in own.items()}
        found: dict[Key, dict[str, None]] = {}
        for number, plan in enumerate(plans):
            alike = (one.plans[number] for one in own.values() if number < len(one.plans))
            products = _products(plan).intersection(*map(_products, alike))
            for key, text in _facts(plan):
                names = [name for name, them in others.items() if number < len(them) and them[number].get(key) != text]
                self.used |= set(names)
                own_text = PRODUCT if key in products else YOURS + " and ".join(names)
                found.setdefault(key, {})[own_text if names else text] = None
        self._found = found

    def __call__(self, *key: str) -> str:
        texts = list(self._found.get((key[0], key[1], key[2]), {NOTHING: None}))
        if GATEWAY in texts:
            return GATEWAY
        return " or ".join(texts) if len(texts) <= MOST_NAMED else "differs by case"


def _products(plan: Plan) -> set[Key]:
    """The queues whose limit is the bandwidth-delay product of their link."""
    return {
        (link.name, one.name, "queue")
        for link in plan.network.links
        for one in link.directions
        if one.queue and one.queue.limit_bytes == OneProduct().at(one.rate_bps or 0, link.rtt_ns).limit_bytes
    }


def _facts(plan: Plan) -> Iterator[tuple[Key, str]]:
    services = {service.node: service.kind for service in plan.cell.services}
    for node in plan.network.nodes:
        stack = STACKS.get(node.stack, node.stack) if isinstance(node, Host) else ROUTERS[node.kind]
        yield ("node", node.name, ""), GATEWAY if GATEWAY in services.get(node.name, "") else stack
    for link in plan.network.all_links:
        for direction in link.directions:
            queue = direction.queue if isinstance(direction, Direction) else None
            rate = NOTHING if direction.rate_bps is None else _short("rate", direction.rate_bps)
            rate, delay, errors = link_texts(plan, Hop(link, direction), rate, is_short=True)
            texts = (rate, delay, _queue(queue), errors)
            for head, text in zip(list(LINKS)[2:], texts, strict=True):
                yield (link.name, direction.name, head), text
    for workload in plan.cell.heads:
        parts = sum(one.part_of == workload.part_of for one in plan.cell.workloads)
        amount = _amount(workload) if workload.part_of == workload.name else f"{parts} files"
        texts = (workload.kind, _short("duration", workload.start_ns), amount, _segment(workload))
        for head, text in zip(list(TRAFFIC)[2:], texts, strict=True):
            yield ("workload", workload.part_of, head), text


def _short(kind: str, number: int) -> str:
    """A quantity with at most four digits."""
    return units.text(kind, int(float(f"{number:.4g}")))


def _queue(queue: Queue | None) -> str:
    if queue is None:
        return NOTHING
    size = _short("size", queue.limit_bytes) if queue.limit_bytes else f"{queue.limit_packets} packets"
    return f"{'' if queue.discipline == DEFAULT else f'{queue.discipline} '}{size}{' ECN' if queue.ecn else ''}"


def _amount(workload: Traffic) -> str:
    keys = (("bytes_", "size"), ("duration_ns", "duration"), ("max_rate_bps", "rate"))
    found = (_short(kind, amount) for key, kind in keys if (amount := getattr(workload, key, None)))
    return next(found, f"{getattr(workload, 'count', 0)} packets")


def _segment(workload: Traffic) -> str:
    size = getattr(workload, "segment_bytes", None) or getattr(workload, "packet_bytes", None)
    return f"{size} B" if size else NOTHING


def _link_rows(plans: Sequence[Plan], facts: _Facts) -> Iterator[tuple[str, ...]]:
    """A row for both directions of a link, or one for each; links with the same rows stand together."""
    groups: dict[tuple[tuple[str, ...], ...], dict[str, Link | SerialLink]] = {}
    for link in plans[0].network.all_links:
        rows = [tuple(facts(link.name, one.name, head) for head in list(LINKS)[2:]) for one in link.directions]
        if any(row[:2] != (NOTHING, NOTHING) for row in rows):
            groups.setdefault(tuple(dict.fromkeys(rows)), {})[link.name] = link
    for texts, links in groups.items():
        names = [name for name, link in links.items() if _has_name(link)]
        said = _names(names or [*links] if len(links) < MOST_NAMED or names else ["other links"])
        ways_ = [f"{one.from_} → {one.to}" for one in next(iter(links.values())).directions]
        for number, row in enumerate(texts):
            yield "" if number else said, ways_[number] if len(texts) > 1 else "each way", *row


def _traffic_rows(plans: Sequence[Plan], facts: _Facts) -> Iterator[tuple[str, ...]]:
    groups: dict[tuple[str, ...], dict[str, str]] = {}
    for name, one in {one.part_of: one for plan in reversed(plans) for one in plan.cell.heads}.items():
        start, end = (one.to, one.from_) if getattr(one, "reverse", False) else (one.from_, one.to)
        row = tuple(facts("workload", name, head) for head in list(TRAFFIC)[2:])
        groups.setdefault((end, *row), {})[name] = start
    for (end, *texts), starts in groups.items():
        yield _names([*starts]), f"{_names([*dict.fromkeys(starts.values())])} → {end}", *texts


def _names(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < MOST_NAMED else f"{names[0]} … {names[-1]}"


def _table(heads: Mapping[str, int], rows: Sequence[Sequence[str]], top: int) -> tuple[list[str], int]:
    """The lines of a table, and where it ends."""
    if not rows:
        return [], top
    lefts = [MARGIN + LETTER * letters for letters in accumulate([0, *heads.values()])][:-1]
    lines = [_text(left, top + 12, head, "head") for left, head in zip(lefts, heads, strict=True)]
    lines.append(f'<path class="line" style="stroke-width: 1" d="M{MARGIN} {top + 18}H{WIDTH - MARGIN}"/>')
    y = top + 18
    for row in rows:
        cells = [textwrap.wrap(text, width - 1) for text, width in zip(row, heads.values(), strict=True)]
        for left, cell, whole in zip(lefts, cells, row, strict=True):
            style = "yours" if YOURS in whole else ""
            lines += [_text(left, y + LINE * number, text, style) for number, text in enumerate(cell, 1)]
        y += LINE * max(map(len, cells)) + 3
    return lines, y + 4


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "") -> str:
    more = f' class="{style}"' if style else ""
    more += f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:.0f}" y="{y:.0f}"{more}>{escape(text)}</text>'


def _box(style: str, x: float, y: float, wide: float, high: float, radius: float) -> str:
    """A box around a point."""
    place = f'x="{x - wide / 2:.0f}" y="{y - high / 2:.0f}" width="{wide:.0f}" height="{high:.0f}"'
    return f'<rect class="{style}" {place} rx="{radius:.0f}"/>'


def _sketch(plans: Sequence[Plan], facts: _Facts) -> tuple[list[str], int]:
    """Lines first, then the nodes over their ends; and the height."""
    plan = plans[0]
    places, hidden = _places(plans)
    lefts = _lefts(plan, places)
    at = {name: (lefts[column], 42 + ROW * row) for name, (column, row) in places.items()}
    wide = min([WIDEST, *(int(b - a) - 16 for a, b in pairwise(lefts))])
    lines, labels = [], []
    for link in plan.network.all_links:
        a, b = (end.node for end in link.ends)
        if hidden.keys() & {a, b}:
            continue
        (high_x, high_y), (low_x, low_y) = sorted((at[a], at[b]), key=lambda place: place[1])
        serial = " serial" if isinstance(link, SerialLink) else ""
        lines.append(f'<path class="line{serial}" d="M{low_x:.0f} {low_y:.0f}H{high_x:.0f}V{high_y:.0f}"/>')
        if _has_name(link):
            labels += _pill((high_x + low_x) / 2, low_y, link)
    nodes = {node.name: node for node in plan.network.nodes}
    used = {end for one in plans for workload in one.cell.workloads for end in (workload.from_, workload.to)}
    for name, (x, y) in at.items():
        labels.append(_box("node", x, y, wide, BOX, 4 if isinstance(nodes[name], Host | Switch) else BOX / 2))
        what = facts("node", name, "") if name in used or not isinstance(nodes[name], Host) else ""
        labels.append(_text(x, y + (-2 if what else 5), name, "", "middle"))
        labels += [_text(x, y + 14, what, "head", "middle")] if what else []
    bottom = max(y for _, y in at.values()) + BOX / 2
    for column, more in Counter(hidden.values()).items():
        labels.append(_text(lefts[column], bottom + 18, f"and {more} more", "head", "middle"))
    return [*lines, *labels], int(bottom + (28 if hidden else 8))


def _pill(x: float, y: float, link: Link | SerialLink) -> list[str]:
    """The name of a link, with a satellite if it is far away."""
    is_far = any(Hop(link, one).delay_ns >= SATELLITE_NS for one in link.directions)
    wide = 9 * len(link.name) + (48 if is_far else 16)
    left = x - wide / 2
    lines = [_box("pill", x, y, wide, PILL, PILL / 2), _text(x + (15 if is_far else 0), y + 5, link.name, "", "middle")]
    if is_far:
        lines.append(f'<path class="sat" d="M{left + 10:.0f} {y - 3:.0f}h7v6h-7zm9 -2h5v10h-5zm7 2h7v6h-7z"/>')
    return lines


def _has_name(link: Link | SerialLink) -> bool:
    """Whether it is called other than by its ends."""
    a, b = (end.node for end in link.ends)
    return link.name not in (f"{a}-{b}", f"{b}-{a}")


def _places(plans: Sequence[Plan]) -> tuple[dict[str, tuple[int, int]], dict[str, int]]:
    """Column and row of each node, and the columns of those for which there is no room: the path in row 0, what hangs
    from it below, senders to the left and others outward.
    """
    path = path_of(plans[0])
    columns = columns_of(plans[0], {workload.from_ for one in plans for workload in one.cell.workloads})
    first = min(columns.values())
    places: dict[str, tuple[int, int]] = {}
    hidden: dict[str, int] = {}
    for name, column in columns.items():
        above = [row for there, row in places.values() if there == column - first]
        row = 0 if name in path else 1 + max(above, default=0)
        if row < MOST_IN_A_COLUMN:
            places[name] = (column - first, row)
        else:
            hidden[name] = column - first
    return places, hidden


def _lefts(plan: Plan, places: Mapping[str, tuple[int, int]]) -> list[float]:
    """The middle of each column; two that a link with a name joins are twice as far from each other."""
    named = [
        [places.get(end.node, (0, 0))[0] for end in link.ends] for link in plan.network.all_links if _has_name(link)
    ]
    last = max(column for column, _ in places.values())
    weights = [2 if [column, column + 1] in map(sorted, named) else 1 for column in range(last)]
    step = (WIDTH - 2 * MARGIN - WIDEST) / max(1, sum(weights))
    return [MARGIN + WIDEST / 2 + step * weight for weight in accumulate([0, *weights])]
