"""Who gets which cells: nothing is lost, nothing counts twice, and nobody is blamed for another."""

from __future__ import annotations

import random

import pytest

from scpslab.running.dispatch import MOST_LOSSES, MOST_TROUBLES, Dispatch, GivenUpError

CELLS = [f"c{number}" for number in range(40)]


def dispatch(workers=("a", "b"), costs=1.0, **options):
    made = Dispatch(dict.fromkeys(CELLS, costs), **options)
    made.present(dict.fromkeys(workers, 1))
    return made


def finish(made):
    """Lets every worker do what it has until all is done; returns the cells in the order of their ends."""
    ended = []
    while not made.is_over:
        assert made.give(0) or made.batches
        for number, batch in list(made.batches.items()):
            ended += made.ended(number, batch.cells)
    return ended


def test_neighbours_go_together_in_batches_that_become_shorter():
    made = dispatch(batch_s=8)
    sizes = []
    while not made.is_over:
        for batch in made.give(0):
            assert list(batch.cells) == CELLS[CELLS.index(batch.cells[0]) :][: len(batch.cells)]
            sizes.append(len(batch.cells))
            made.ended(batch.number, batch.cells)
    assert sizes[0] == 8
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1


def test_a_cell_that_takes_longer_than_a_batch_is_one():
    assert [len(batch.cells) for batch in dispatch(costs=1000.0).give(0)] == [1, 1]


def test_a_worker_with_several_places_gets_several_batches():
    made = dispatch(workers=())
    made.present({"a": 3, "b": 1})
    assert sorted(batch.worker for batch in made.give(0)) == ["a", "a", "a", "b"]
    assert made.give(0) == []


@pytest.mark.parametrize("seed", range(30))
def test_whatever_happens_every_cell_counts_once(seed):
    draw = random.Random(seed)
    made, there, counted = dispatch(), {"a", "b"}, []
    for step in range(300):
        if made.is_over:
            break
        made.present(dict.fromkeys(sorted(there), 1))
        made.give(step)
        is_full = all(len(worker.batches) == worker.places for worker in made.workers.values())
        assert is_full or not (made.waiting or made.alone)
        made.spare(step, 5, 1.0)
        batch = draw.choice(list(made.batches.values())) if made.batches else None
        match draw.randrange(9):
            case 7 if len(made.workers) > 1:
                made.exclude(draw.choice(sorted(made.workers)), "broken")
            case 0 if len(there) > 1:
                there.discard(draw.choice(sorted(there)))
            case 1:
                there.add(f"w{step}")
            case 2:
                made.cut_off()
            case 3 if batch and len(batch.cells) > 1:
                made.lost(batch.number)
            case 4 if batch:
                counted += made.ended(batch.number, batch.cells[: draw.randrange(len(batch.cells) + 1)])
            case _ if batch:
                counted += made.ended(batch.number, batch.cells)
    made.present({"last": 2})
    counted += finish(made)
    assert sorted(counted) == sorted(CELLS)
    assert not made.batches


def test_only_the_cell_that_ends_workers_is_blamed():
    made, ended = dispatch(workers=(), batch_s=100), []

    def with_a_deadly_cell():
        while True:
            made.present({f"w{len(ended)}": 1})
            (batch,) = made.give(0)
            if "c7" in batch.cells:
                ended.append(batch.cells)
            else:
                made.ended(batch.number, batch.cells)

    with pytest.raises(GivenUpError, match="cell c7: 5 workers ended"):
        with_a_deadly_cell()
    assert ended[1:] == [("c7",)] * MOST_LOSSES


def test_trouble_is_the_worker_s_until_others_have_it_too():
    made = dispatch(workers=("a", "b", "c", "d"))
    for worker in ("a", "b"):
        made.give(0)
        made.trouble(worker, "c0", "found no space")
    assert set(made.excluded) == {"a", "b"}
    assert MOST_TROUBLES == 3
    with pytest.raises(GivenUpError, match="cell c0: found no space"):
        made.trouble("c", "c0", "found no space")


def test_what_a_liar_gave_waits_again():
    made = dispatch()
    for batch in made.give(0):
        made.ended(batch.number, batch.cells)
    gave = made.withdraw("a")
    made.exclude("a", "lies")
    assert gave
    assert not made.done & set(gave)
    made.present({"a": 1, "b": 1})
    assert "a" not in made.workers
    assert set(gave) <= set(finish(made))


def test_what_a_liar_gave_waits_again_although_it_has_gone():
    made = dispatch()
    given = made.give(0)
    for batch in given:
        made.ended(batch.number, batch.cells)
    made.present({"b": 1})
    theirs = {cell for batch in given if batch.worker == "a" for cell in batch.cells}

    assert set(made.withdraw("a")) == theirs
    assert made.withdraw("a") == []
    assert theirs <= set(finish(made))


def test_a_late_batch_has_a_copy_and_its_first_result_counts():
    made = dispatch(batch_s=1000)
    slow = made.give(0)[0]
    while any(batch.worker != slow.worker for batch in made.batches.values()) or made.waiting:
        for number, batch in list(made.batches.items()):
            if batch.worker != slow.worker:
                made.ended(number, batch.cells)
        made.give(0)
        if not made.waiting and len(made.batches) == 1:
            break
    assert made.spare(slow.busy_s, 5, 1.0) == []
    (copy,) = made.spare(slow.busy_s + 6, 5, 1.0)
    assert copy.cells == slow.cells
    assert made.spare(slow.busy_s + 60, 5, 1.0) == []
    assert made.ended(copy.number, copy.cells) == list(slow.cells)
    assert made.is_over
    assert made.ended(slow.number, slow.cells) == []


class NotWalked(dict):
    """Finds what is asked for by name, and nothing else."""

    def __iter__(self):
        raise AssertionError("walked through everything that is out")

    keys = values = items = __iter__


def test_a_result_costs_the_same_however_many_others_are_out():
    made = Dispatch({f"c{number}": 1.0 for number in range(3000)}, batch_s=2)
    made.present({f"w{number}": 2 for number in range(500)})
    out = made.give(0)
    assert len(out) == 1000
    made.workers, made.batches = NotWalked(made.workers), NotWalked(made.batches)

    for batch in out[::7]:
        assert made.ended(batch.number, batch.cells) == list(batch.cells)
        (next_one,) = made.give(1)
        assert next_one.worker == batch.worker
        assert made.spare(1, 5, 1.0) == []
    made.lost(out[1].number)
    assert [batch.cells for batch in made.give(2)] == [out[1].cells[:1]]


def test_a_worker_with_fewer_batches_is_next():
    made = dispatch(workers=(), batch_s=1)
    made.present({"a": 2, "b": 2})
    first = made.give(0)
    assert [batch.worker for batch in first] == ["a", "b", "a", "b"]
    made.ended(first[0].number, first[0].cells)
    made.ended(first[2].number, first[2].cells)
    made.ended(first[3].number, first[3].cells)
    assert [batch.worker for batch in made.give(0)] == ["a", "b", "a"]
