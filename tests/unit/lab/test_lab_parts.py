"""Bytes lost, duplicated and damaged, against files that were spoilt on purpose. Accounts name what keeps them from
closing. The lab's event loop. A serial link's plan in the words of `scps channel` and pppd. Datagrams of policies:
what is written is read, and whatever else comes is nothing.
"""

import json
import random
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scpslab.lab.accounts import Accounts
from scpslab.lab.loop import Loop
from scpslab.lab.serial import channel_errors, channel_options, crossing_ns, pppd_options
from scpslab.lab.stages import ARRIVAL_COUNTERS, ENTRY_COUNTERS
from scpslab.plan import schema
from scpslab.plan.cell import CellPlan, Limits
from tests import golden
from tests.networks import network_of

from scpslab.kinds.workloads.fp.lab import FileDamage, compare
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


def written(tmp_path: Any, pieces: int) -> list[str]:
    """What is said of a direction that carried two packets, and had some of them in one piece."""
    counters = dict.fromkeys((*ENTRY_COUNTERS, *ARRIVAL_COUNTERS), 0) | {"offered_packets": 2, "delivered_packets": 2}
    plan = SimpleNamespace(delay_ns=0, delay_table=None)
    network = SimpleNamespace(
        directions=[SimpleNamespace(link="hop", name="forward", plan=plan, arriving=1)],
        managed_queues=dict,
        longest_ns=lambda: 0,
        stages=SimpleNamespace(
            account=lambda _: dict(counters),
            pieces=lambda _: pieces,
            followed=lambda _: 0,
            recorded=SimpleNamespace(stop=lambda: None),
        ),
    )
    settled = SimpleNamespace(drawn=frozenset())
    folders = SimpleNamespace(records=tmp_path)
    context = SimpleNamespace(network=network, settled=settled, folders=folders, now_ns=lambda: 0)
    return Accounts(context).write()  # type: ignore[arg-type]


def test_a_kernel_that_cuts_packets_up_behind_the_queue_is_named(tmp_path):
    assert written(tmp_path, 0) == []
    (said,) = written(tmp_path, 3)
    assert said.startswith("hop.forward: found 3 pieces of several packets (UDP segmentation offload)")
    assert said.endswith("Use engine virtual or live, or switch the program's offload off")


def now_ns() -> int:
    """The loop's clock."""
    return time.clock_gettime_ns(time.CLOCK_REALTIME)


def test_timers_are_called_in_the_order_of_their_instants_and_never_early():
    loop, called = Loop(), []
    start = now_ns()
    for wait_ns in (3_000_001, 1_000_000, 2_500_000, -5):
        loop.at(start + wait_ns, lambda wait_ns=wait_ns: called.append((wait_ns, now_ns() - start)))
    loop.run_until(lambda: len(called) == 4)

    assert [wait_ns for wait_ns, _ in called] == [-5, 1_000_000, 2_500_000, 3_000_001]
    assert all(passed_ns >= wait_ns for wait_ns, passed_ns in called)


def test_a_timer_that_is_set_while_another_waits_comes_first():
    loop, called = Loop(), []
    start = now_ns()
    loop.at(start + 1_000_000, lambda: loop.at(start + 2_000_000, lambda: called.append("inner")))
    loop.at(start + 4_000_000, lambda: called.append("outer"))
    loop.run_until(lambda: "outer" in called)

    assert called == ["inner", "outer"]


def test_the_limit_ends_it():
    assert Loop().run_until(lambda: False, now_ns() + 1_000_000) is False


ERRORS = {"model": "none", "action": "drop", "settings": {}, "seed": "5c" * 32, "vector_errors": 65536}
ERRORS |= {"drop_packets": [], "drop_min_bytes": 0, "outages": []}


def serial_link(**parameters):
    return network_of("sgls", **parameters).serial_links[0]


def cell(data_errors=None):
    errors = {"forward": ERRORS | (data_errors or {}), "return": ERRORS}
    impairments = [{"link": "serial", "direction": name, "errors": one} for name, one in errors.items()]
    limits = Limits(virtual_s=60, wall_s=60)
    plain = CellPlan(id="r1", scenario="test", axes={}, repeat=1, kernel_seed="", limits=limits)
    return schema.read(CellPlan, schema.write(plain) | {"impairments": impairments})


@golden.each("errors of a serial line")
def test_every_error_model_has_its_words(case):
    """And the seed is the plan's."""
    case.hold(channel_errors(serial_link(), cell(json.loads(case)), Path("/vectors")))


def test_nothing_of_a_cell_is_on_the_command_line():
    """The channel is started in the template of its network."""
    assert channel_options(serial_link(), Path("/errors"))[:3] == ["--hold", "--errors-from", "/errors"]


@pytest.mark.parametrize("parameters", [{}, {"mru": "296 B", "asyncmap": 655360, "header_compression": 1}], ids=str)
def test_pppd_gets_addresses_sizes_and_compression(parameters):
    found = "\n".join(" ".join(pppd_options(serial_link(**parameters), end)) for end in (0, 1))
    golden.Case("options of pppd", str(parameters)).hold(found)


@pytest.mark.parametrize(
    ("parameters", "least_s"),
    [({}, 3), ({"data_delay": "5 s", "ack_delay": "5 s"}, 11), ({"return_rate": "300 bit/s"}, 14)],
)
def test_a_try_of_the_set_up_outlasts_the_round_trip(parameters, least_s):
    options = pppd_options(serial_link(**parameters), 0)
    assert int(options[options.index("lcp-restart") + 1]) >= least_s


def test_the_longest_frame_crosses_the_slowest_line_in_the_time_that_is_waited():
    link = serial_link(return_rate="2400 bit/s")
    data, ack = (crossing_ns(link, direction) for direction in link.directions)
    assert data == 10**9 + 23_300_000 + 30_000 * 10**9 // 115_200
    assert ack == 10**9 + 23_300_000 + 12_500_000_000


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
