"""Datagrams of policies: what is written is read, and whatever else comes is nothing."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from scpslab.kinds.workloads.policy.lab import (
    MOST_HOLES,
    Answer,
    Data,
    content,
    holes_of,
    read_answer,
    read_data,
    write_answer,
    write_data,
)

WORDS, TIMES = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
HOLES = st.lists(st.tuples(WORDS, WORDS), max_size=MOST_HOLES).map(tuple)


@given(st.builds(Data, WORDS, WORDS, TIMES, st.binary(max_size=64)))
def test_data_is_read_as_written(data):
    assert read_data(write_data(data)) == data


@given(st.builds(Answer, WORDS, WORDS, TIMES, WORDS, WORDS, HOLES))
def test_an_answer_is_read_as_written(answer):
    assert read_answer(write_answer(answer)) == answer


@given(st.binary(max_size=200))
def test_any_other_datagram_is_read_without_harm(datagram):
    for found, written in ((read_data(datagram), write_data), (read_answer(datagram), write_answer)):
        assert found is None or written(found) == datagram


@given(st.lists(st.booleans(), max_size=300), st.data())
def test_holes_are_the_missing_segments(missing, data):
    below = data.draw(st.integers(0, len(missing)))
    end = data.draw(st.integers(below, len(missing)))
    holes = holes_of(missing, below, end)

    covered = [segment for first, last in holes for segment in range(first, last + 1)]
    expected = [segment for segment in range(below, end) if missing[segment]]
    assert covered == (expected if len(holes) < MOST_HOLES else expected[: len(covered)])
    assert all(left[1] + 1 < right[0] for left, right in pairwise(holes))


def test_segments_differ_in_content():
    assert content(1, 0, 100) != content(1, 1, 100) != content(2, 1, 100)
