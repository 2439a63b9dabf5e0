"""Integrity of a file: the numbers of missing, duplicated and damaged bytes."""

from __future__ import annotations

from dataclasses import dataclass

# Random content repeats no row of this many bytes by chance: 2^20 rows of 128 bits.
ROW_BYTES = 16


@dataclass(frozen=True)
class Comparison:
    """Bytes sent that are missing in the file that arrived, bytes that it has more than once, and bytes in it that were
    not sent there.
    """

    lost: int
    duplicated: int
    damaged: int


def compare(sent: bytes, arrived: bytes) -> Comparison:
    """Aligns the file that arrived with the file sent, row by row; a changed byte is damaged, not lost.

    The sent content must not repeat itself.
    """
    if arrived == sent:
        return Comparison(0, 0, 0)
    covered = bytearray(len(sent))
    duplicated = damaged = 0
    gap_at = sent_end = 0
    for at, source, length in _matches(sent, arrived):
        wrong = _wrong_in_place(sent, arrived, covered, (sent_end, source), (gap_at, at))
        damaged += wrong
        duplicated += sum(covered[source : source + length])
        covered[source : source + length] = b"\1" * length
        gap_at, sent_end = at + length, source + length
    damaged += _wrong_in_place(sent, arrived, covered, (sent_end, len(sent)), (gap_at, len(arrived)))
    return Comparison(covered.count(0), duplicated, damaged)


def _wrong_in_place(
    sent: bytes, arrived: bytes, covered: bytearray, source: tuple[int, int], found: tuple[int, int]
) -> int:
    """Bytes between two matches that are not the sent ones; those that stand in place of others count as arrived, wrong
    or right.
    """
    room = max(0, source[1] - source[0])
    length = found[1] - found[0]
    in_place = min(room, length)
    pairs = zip(sent[source[0] : source[0] + in_place], arrived[found[0] : found[0] + in_place], strict=True)
    wrong = sum(left != right for left, right in pairs)
    covered[source[0] : source[0] + in_place] = b"\1" * in_place
    return wrong + length - in_place


def _matches(sent: bytes, arrived: bytes) -> list[tuple[int, int, int]]:
    """Stretches of at least a row that are alike: where in `arrived`, where in `sent`, length; ascending in
    `arrived`.
    """
    rows = {sent[at : at + ROW_BYTES]: at for at in range(0, len(sent) - ROW_BYTES + 1, ROW_BYTES)}
    found: list[tuple[int, int, int]] = []
    at, settled = 0, 0
    while at + ROW_BYTES <= len(arrived):
        source = rows.get(arrived[at : at + ROW_BYTES])
        if source is None:
            at += 1
            continue
        start = at
        while start > settled and source > 0 and arrived[start - 1] == sent[source - 1]:
            start, source = start - 1, source - 1
        length = _alike(sent, source, arrived, start)
        found.append((start, source, length))
        at = settled = start + length
    return found


def _alike(sent: bytes, source: int, arrived: bytes, at: int) -> int:
    """How many bytes are the same from two places on."""
    step, length = 1 << 16, 0
    while step:
        left, right = sent[source + length : source + length + step], arrived[at + length : at + length + step]
        if left == right and len(left) == step:
            length += step
        else:
            step //= 2
    return length
