"""Templates are shared while cells need them, replaced when they have ended, and dropped when there are too many."""

from pathlib import Path

import pytest

from scpslab.engine.template import MOST_IDLE, Held, TemplatePool

NEEDED = 100


class FakeTemplate:
    """A template that boots when it is asked to, unless it cannot."""

    def __init__(self, boots=True):
        self.boots, self.memory_bytes, self.is_alive, self.is_closed = boots, None, True, False

    def boot(self, limit_s):
        self.memory_bytes = 1 if self.boots and self.is_alive else None

    def kill(self):
        self.is_alive = False

    def close(self):
        self.kill()
        self.is_closed = True


class Pool:
    """A pool, and all templates that were made for it."""

    def __init__(self, free_bytes=lambda: NEEDED):
        self.pool, self.made, self.given_back = TemplatePool(free_bytes), [], []

    def make(self, boots=True):
        template = FakeTemplate(boots)
        self.made.append(template)
        return Held(template, Path("/nowhere"), lambda: self.given_back.append(template))

    def use(self, key, boots=True):
        return self.pool.use(key, lambda: self.make(boots), 1.0, NEEDED)


@pytest.fixture
def pool():
    return Pool()


def test_cells_of_a_template_share_it(pool):
    with pool.use("a") as first, pool.use("a") as second:
        assert first is second
    with pool.use("a") as third:
        assert third is first
    assert len(pool.made) == 1


def test_one_that_has_ended_is_replaced_and_given_back(pool):
    with pool.use("a") as first:
        first.template.kill()
    with pool.use("a") as second:
        assert second is not first
    assert pool.given_back == [pool.made[0]]


def test_one_that_does_not_boot_is_its_first_cell_s_alone(pool):
    with pool.use("a", boots=False) as held:
        assert held.template.memory_bytes is None
        assert pool.given_back == []
    assert pool.given_back == pool.made
    with pool.use("a") as held:
        assert held.template.memory_bytes == 1


def test_the_one_used_longest_ago_goes_when_there_are_too_many(pool):
    keys = [f"t{number}" for number in range(MOST_IDLE)]
    for key in (*keys, keys[0]):
        with pool.use(key):
            pass
    with pool.use("one more"):
        pass

    assert pool.given_back == [pool.made[1]]


def test_those_that_wait_go_when_memory_is_short():
    pool = Pool(free_bytes=lambda: NEEDED - 1)
    with pool.use("used"):
        for key in ("a", "b"):
            with pool.use(key):
                pass

    assert pool.given_back == [pool.made[1]]


def test_closing_ends_all_and_gives_back_those_in_use_when_their_cells_have_noticed(pool):
    with pool.use("a"):
        pass
    with pool.use("b"):
        pool.pool.close()
        assert [template.is_alive for template in pool.made] == [False, False]
        assert pool.given_back == [pool.made[0]]
    assert pool.given_back == pool.made


def test_nothing_boots_after_a_stop(pool):
    pool.pool.stop()
    with pool.use("a") as held:
        assert held.template.memory_bytes is None
    assert pool.given_back == pool.made
