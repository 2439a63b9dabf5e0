"""Bytes lost, duplicated and damaged, against files that were spoilt on purpose."""

import random

import pytest

from scpslab.kinds.workloads.fp.lab import FileDamage, compare

SENT = random.Random(1997).randbytes(100_000)


def flipped(*places: int) -> bytes:
    """The file with a bit changed at each place."""
    changed = bytearray(SENT)
    for place in places:
        changed[place] ^= 0x40
    return bytes(changed)


@pytest.mark.parametrize(
    ("arrived", "expected"),
    [
        (SENT, FileDamage(0, 0, 0)),
        (b"", FileDamage(len(SENT), 0, 0)),
        (SENT[:40_000], FileDamage(60_000, 0, 0)),
        (SENT[:40_000] + SENT[41_400:], FileDamage(1_400, 0, 0)),
        (SENT[:40_000] + SENT[38_600:], FileDamage(0, 1_400, 0)),
        (SENT + SENT, FileDamage(0, len(SENT), 0)),
        (flipped(0, 5_000, 99_999), FileDamage(0, 0, 3)),
        (SENT[:50_000] + b"\0" * 1_000 + SENT[51_000:], FileDamage(0, 0, 1_000)),
        (SENT + b"more", FileDamage(0, 0, 4)),
        (SENT[10_000:20_000] + SENT[10_000:20_000], FileDamage(90_000, 10_000, 0)),
    ],
)
def test_every_kind_of_spoiling_is_counted_as_what_it_is(arrived, expected):
    """Zeros hit right bytes by chance, one in 256; no more may be missing from the count than that."""
    found = compare(SENT, arrived)

    assert (found.lost, found.duplicated) == (expected.lost, expected.duplicated)
    assert expected.damaged * 0.98 <= found.damaged <= expected.damaged


def test_several_faults_in_one_file_are_told_apart():
    """A hole, a repetition and a changed byte, far from each other."""
    arrived = SENT[:20_003] + SENT[20_103:50_000] + SENT[49_950:70_000] + flipped(80_001)[70_000:]

    assert compare(SENT, arrived) == FileDamage(100, 50, 1)
