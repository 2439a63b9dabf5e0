"""Profiles: each format against an example computed by hand, and hostile input."""

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scpslab.analysis.figures import conditions
from scpslab.cli import app
from scpslab.core.problems import UnfitError
from scpslab.plan.disciplines import FULL_PACKET_BYTES
from scpslab.plan.links import FOR_EVER_NS
from scpslab.plan.profiles import chances_of, longest_wait_ns, with_sums
from scpslab.scenario.planning import flows
from scpslab.scenario.profiles.format import Options
from scpslab.scenario.profiles.formats import FORMATS, read
from scpslab.scenario.profiles.profile import Profile, seconds
from scpslab.scenario.profiles.words import drawn, explained
from tests import golden
from tests.cases import refusal

S, MS = 10**9, 10**6


def profiles(name, text, options=None):
    return FORMATS[name].read(text.encode(), "file", options or Options()).profiles


def test_a_table_says_everything():
    """Times are decimal and exact; an empty cell changes nothing."""
    text = (
        "# made by hand\n# repeat_s: 15\nt_s,rate_bit_s,delay_s,ber,up\n0,1000000,0.0255,1e-6,1\n1.000000001,,0.03,,0\n"
    )

    assert profiles("csv", text)["forward"] == Profile(
        rate_bps=((0, 1_000_000),),
        delay_ns=((0, 25_500_000), (1_000_000_001, 30 * MS)),
        ber=((0, 1e-6),),
        up=((0, True), (1_000_000_001, False)),
        repeat_ns=15 * S,
    )


@golden.each("profile that cannot be read", "case format_ text")
def test_what_is_wrong_with_a_file_is_said_with_its_line(case, format_, text, tmp_path):
    (path := tmp_path / "file").write_bytes(text.encode())
    case.hold(refusal(read, path, format_, Options()), tmp_path)


def test_comments_of_a_table_are_free():
    """A comment that only begins like the key is none; times are rounded to nanoseconds."""
    text = "# repeats every orbit\n# station: 45 N\n#\n# 15 s a turn\nt_s,delay_s\n0.30000000000000004,0.0250000006\n"
    assert profiles("csv", text)["forward"] == Profile(delay_ns=((300 * MS, 25 * MS + 1),))


def test_opportunities_are_counted_and_never_averaged():
    """Three packets in millisecond 2 stay three at one instant, and the trace repeats after its last line."""
    options = Options(delays=("delays", b"7\n7\n9\n"), delay_every_ns=2 * MS)
    found = profiles("mahimahi", "0\n2\n2\n2\n5\n", options)

    assert found["forward"] == Profile(
        packets=((0, 1), (2 * MS, 3), (5 * MS, 1)), delay_ns=((0, 7 * MS), (4 * MS, 9 * MS)), repeat_ns=5 * MS
    )
    bare = replace(found["forward"], delay_ns=())
    assert FORMATS["mahimahi"].write(bare, Options()) == "0\n2\n2\n2\n5\n"


def test_turns_are_written_out():
    """The last opportunity of a turn and the first of the next may be at one time: they add up."""
    found = profiles("mahimahi", "0\n2\n5\n")["forward"].until(8 * MS)

    assert found.packets == ((0, 1), (2 * MS, 1), (5 * MS, 2), (7 * MS, 1))
    assert found.repeat_ns is None


ION = """
# a pass
1 1 ''
s
@ 2026/11/29-20:00:00
a contact +60 +7260 1 2 10000 0.9
a contact +60 +7260 2 1 1000
a range +0 +3660 1 2 12
a range +3660 +7260 1 2 14
a range 2026/11/29-21:01:00 +9000 2 1 13
"""


def test_ion_counts_bytes():
    """10,000 bytes per second are 80,000 bit/s. A range from the lower number to the higher holds for the other way too,
    while that has none of its own (ionrc(5)).
    """
    there, back = (profiles("ion", ION)[pair] for pair in ("1-2", "2-1"))

    assert there == Profile(
        rate_bps=((60 * S, 80_000),),
        delay_ns=((60 * S, 12 * S), (3660 * S, 14 * S)),
        up=((0, False), (60 * S, True), (7260 * S, False)),
    )
    assert back.rate_bps == ((60 * S, 8_000),)
    assert back.delay_ns == ((60 * S, 12 * S), (3660 * S, 13 * S))


def test_hdtn_counts_bits():
    """The same pass; of the older key `rate` the unit is Mbit/s."""
    contact = {"contact": 0, "source": 1, "dest": 2, "startTime": 60, "endTime": 7260, "owlt": 12}
    newer = profiles("hdtn", json.dumps({"contacts": [contact | {"rateBitsPerSec": 80_000}]}))
    older = profiles("hdtn", json.dumps({"contacts": [contact | {"rate": 2}]}))

    assert newer["1-2"].rate_bps == ((60 * S, 80_000),)
    assert older["1-2"].rate_bps == ((60 * S, 2_000_000),)
    assert newer["1-2"].delay_ns == ((60 * S, 12 * S),)


def test_ion_and_hdtn_say_the_same():
    """From one plan to the other and back: a factor of 8 in the text, none in the profile."""
    there = profiles("ion", "a contact +60 +7260 1 2 10000\na range +60 +7260 1 2 12\n")["1-2"]
    as_hdtn = FORMATS["hdtn"].write(there, Options(nodes=(1, 2)))
    as_ion = FORMATS["ion"].write(there, Options(nodes=(1, 2)))

    assert json.loads(as_hdtn)["contacts"][0]["rateBitsPerSec"] == 80_000
    assert "a contact +60 +7260 1 2 10000" in as_ion
    assert profiles("hdtn", as_hdtn)["1-2"] == profiles("ion", as_ion)["1-2"] == there


def test_time_varying_graphs():
    """Factual contacts have a bit error rate, predicted ones generations of which the last counts."""
    factual = ["a", "b", 100.0, 200.0, [[100.0, 9600, 1e-5, 0.5], [150.0, 4800, 1e-4, 0.25]]]
    predicted = ["a", "b", 100.0, 200.0, [[0.0, 1.0, [[100.0, 1, 0.5]]], [50.0, 1.0, [[100.0, 9600, 0.5]]]]]
    edge = {"vertices": ["a", "b"]}
    graph = {"vertices": {}, "contact_type": "Contact_v2", "edges": [edge | {"contacts": [factual]}]}
    other = {"vertices": {}, "contact_type": "PredictedContact_v2", "edges": [edge | {"contacts": [predicted]}]}

    assert profiles("tvg", json.dumps(graph))["a-b"] == Profile(
        rate_bps=((0, 9600), (50 * S, 4800)),
        delay_ns=((0, 500 * MS), (50 * S, 250 * MS)),
        ber=((0, 1e-5), (50 * S, 1e-4)),
        up=((0, True), (100 * S, False)),
    )
    assert profiles("tvg", json.dumps(other))["a-b"].rate_bps == ((0, 9600),)


def test_events_of_dipt():
    """Before its first event of a state a link is in the other one."""
    events = [
        {"relative_time_ms": 4_441_828, "link": {"id": "MRO-DSN", "status": "down"}},
        {"relative_time_ms": 506_828, "link": {"id": "MRO-DSN", "status": "up", "bandwidth_bps": 2_000_000}},
        {"relative_time_ms": 0, "link": {"id": "DSN-MRO", "status": "up", "delay_ms": 750}},
    ]
    found = profiles("dipt", json.dumps({"type": "NetworkEvents", "events": events}))

    assert found["MRO-DSN"].up == ((0, False), (506_828 * MS, True), (4_441_828 * MS, False))
    assert found["MRO-DSN"].rate_bps == ((506_828 * MS, 2_000_000),)
    assert found["DSN-MRO"] == Profile(up=((0, True),), delay_ns=((0, 750 * MS),))


PING = """PING 1.1.1.1 (1.1.1.1) 56(84) bytes of data.
[1700000000.500000] 64 bytes from 1.1.1.1: icmp_seq=1 ttl=58 time=100 ms
no answer yet for icmp_seq=2
[1700000002.440000] 64 bytes from 1.1.1.1: icmp_seq=3 ttl=58 time=40.5 ms
"""


def test_ping():
    """Half of the round trip, from when the probe was sent: 0.4 s and 2.3995 s."""
    found = FORMATS["ping"].read(PING.encode(), "file", Options())

    assert found.profiles["forward"].delay_ns == ((0, 50 * MS), (1_999_500_000, 20_250_000))
    assert "1 of 3 probes had no reply" in found.notes[1]


def test_irtt():
    """Half of the round trip, or what the clocks show."""
    trips = [
        {
            "lost": "false",
            "timestamps": {"client": {"send": {"wall": 5 * S + at}}},
            "delay": {"rtt": rtt, "send": rtt // 4, "receive": rtt - rtt // 4},
        }
        for at, rtt in ((0, 40 * MS), (S, 60 * MS))
    ]
    text = json.dumps({"round_trips": [*trips, {"lost": "true"}]})

    assert profiles("irtt", text)["return"].delay_ns == ((0, 20 * MS), (S, 30 * MS))
    assert profiles("irtt", text, Options(one_way=True))["return"].delay_ns == ((0, 30 * MS), (S, 45 * MS))


def test_iperf3():
    sums = [{"start": 0, "end": 1.5, "bits_per_second": 9_600_000.4}, {"start": 1.5, "end": 2, "bits_per_second": 0}]
    text = json.dumps({"intervals": [{"sum": one} for one in sums]})

    assert profiles("iperf3", text)["forward"].rate_bps == ((0, 9_600_000), (1_500_000_000, 0))


STEPS = st.lists(st.integers(0, 10**12), unique=True, max_size=8).map(sorted)


@st.composite
def any_profile(draw):
    """A profile with any columns."""
    rates, delays, bers, ups, packets = (draw(STEPS) for _ in range(5))
    has_packets = draw(st.booleans())
    columns = {
        "rate_bps": () if has_packets else tuple((t, draw(st.integers(0, 10**10))) for t in rates),
        "delay_ns": tuple((t, draw(st.integers(0, 10**12))) for t in delays),
        "ber": tuple((t, draw(st.floats(0, 0.5))) for t in bers),
        "up": tuple((t, draw(st.booleans())) for t in ups),
        "packets": tuple((t, draw(st.integers(0, 10**6))) for t in packets) if has_packets else (),
    }
    last = max((steps[-1][0] for steps in columns.values() if steps), default=0)
    repeat = draw(st.none() | st.integers(last or 1, 10**13))
    if not any(columns.values()):
        columns["up"] = ((0, True),)
    return Profile(**columns, repeat_ns=repeat)


@settings(deadline=None)
@given(any_profile())
def test_a_table_is_read_as_it_was_written(profile):
    assert profiles("csv", FORMATS["csv"].write(profile, Options()))["forward"] == profile
    assert all("\n" not in line for line in explained(profile))


SHAPES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=5) | st.dictionaries(
        st.sampled_from(
            ["contacts", "edges", "contact_type", "events", "link", "id", "status", "relative_time_ms", "intervals", "sum",
             "start", "bits_per_second", "round_trips", "lost", "delay", "rtt", "source", "dest", "startTime", "endTime",
             "rateBitsPerSec", "owlt", "bandwidth_bps", "delay_ms", "timestamps", "client", "send", "wall"]
        ),
        children,
        max_size=5,
    ),
    max_leaves=20,
)  # fmt: skip
LINES = st.lists(
    st.sampled_from(["a contact", "a range", "+1", "+60", "1", "2", "@", "2026/01/01-00:00:00", "icmp_seq=1", "time=3 ms",
                     "[1.5]", "64 bytes from x:", ",", "t_s", "rate_bit_s", "0", "1e999999999", "NaN", "-3", "# repeat_s:"])
    | st.text(max_size=5),
    max_size=30,
).flatmap(lambda words: st.lists(st.sampled_from([" ", "\n", "", ","]), min_size=len(words), max_size=len(words)).map(
    lambda gaps: "".join(word + gap for word, gap in zip(words, gaps, strict=True))
))  # fmt: skip


@pytest.mark.parametrize("name", list(FORMATS))
@settings(deadline=None, max_examples=150)
@given(data=st.binary(max_size=200) | LINES.map(str.encode) | SHAPES.map(json.dumps).map(str.encode))
def test_hostile_files_are_refused_with_what_was_expected(name, data):
    """Either a profile or an error of ours."""
    try:
        found = FORMATS[name].read(data, "file", Options())
    except UnfitError:
        return
    assert found.profiles
    for profile in found.profiles.values():
        list(explained(profile))


@golden.each("file of no format")
def test_files_that_are_none(case, tmp_path):
    (tmp_path / "a.xyz").write_text("")
    case.hold(refusal(read, tmp_path / case, None, Options()), tmp_path)


def typed(capsys, *words):
    app.program(list(words))(list(words), standalone_mode=False)
    return capsys.readouterr()


@st.composite
def plans(draw):
    """A profile of contacts with changes inside of them; now and then one that contact plans cannot say."""
    unit = draw(st.sampled_from([S, S, S, S // 2]))
    times = sorted(draw(st.lists(st.integers(0, 50), unique=True, min_size=4, max_size=8)))
    changes = sorted(draw(st.lists(st.integers(0, 50), unique=True, max_size=6)))
    rates = tuple((t * unit, draw(st.sampled_from([8, 80, 800, 801]))) for t in [-1, *changes])
    delays = tuple((t * unit, draw(st.integers(0, 3)) * draw(st.sampled_from([S, S, S, S // 4]))) for t in changes)
    columns = {
        "rate_bps": tuple((max(t, 0), rate) for t, rate in rates[:1] if changes[:1] != [0]) + rates[1:],
        "delay_ns": delays if changes[:1] == [0] else ((0, S), *delays),
        "up": tuple((t * unit, number % 2 == 0) for number, t in enumerate(times)),
        "ber": draw(st.sampled_from([(), (), (), ((0, 0.1),)])),
    }
    return Profile(**columns, repeat_ns=draw(st.sampled_from([None, None, None, 100 * S])))


@pytest.mark.parametrize("name", ["hdtn", "ion"])
@settings(deadline=None, max_examples=400)
@given(profile=plans())
def test_a_contact_plan_holds_what_was_written_or_it_is_refused(name, profile):
    """Within contacts all values come back, delays to the nearest second, and a second trip changes nothing."""
    try:
        text = FORMATS[name].write(profile, Options())
    except UnfitError:
        unit = 8 if name == "ion" else 1
        assert (
            profile.ber
            or profile.repeat_ns
            or profile.up[-1][1]
            or any(t % S for steps in profile.columns.values() for t, _ in steps)
            or any(rate % unit for _, rate in profile.rate_bps)
        )
        return
    back = profiles(name, text)["1-2"]
    assert not profile.ber
    assert profile.repeat_ns is None
    for t in range(0, 60 * S, S // 2):
        is_up = profile.at("up", t) in (None, True)
        assert is_up is (back.at("up", t) in (None, True))
        if is_up:
            assert back.at("rate_bps", t) == profile.at("rate_bps", t)
            assert abs(back.at("delay_ns", t) - profile.at("delay_ns", t)) <= S // 2
    assert profiles(name, FORMATS[name].write(back, Options()))["1-2"] == back


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from([0, 8, 16, 32])), max_size=5),
    st.sampled_from([8, 16, 32]),
    st.integers(1, 6),
)
def test_the_longest_wait_is_that_of_the_worst_moment(before, last, room_bytes):
    """Looked at every 32nd of a second, at which all bits leave that begin or end with a stretch."""
    ends = [*accumulate(seconds for seconds, _ in before), FOR_EVER_NS // S]
    rates = tuple((end * S, bps) for end, (_, bps) in zip(ends, [*before, (0, last)], strict=True))
    slots = [bps for seconds, bps in before for _ in range(32 * seconds)] + [last] * 32 * 8
    # In 32nds of a bit.
    left = [0, *accumulate(slots)]

    def wait_ns(begin: int) -> Fraction:
        target = left[begin] + 32 * 8 * room_bytes
        slot = next(slot for slot in range(begin, len(slots)) if left[slot + 1] >= target)
        return (slot - begin + Fraction(target - left[slot], slots[slot])) * S / 32

    worst_ns = max(wait_ns(begin) for begin in range(len(slots) - 32 * 7))
    found_ns = longest_wait_ns(tuple(with_sums(rates)), room_bytes, in_chances=False)
    # Whoever comes a moment after the last bits before an outage waits for its end.
    assert worst_ns <= found_ns <= worst_ns + (0 in slots) * S / 32


def test_the_longest_wait_for_chances_is_that_between_them():
    """Three packets wait for the fourth chance where the first has just gone; the first of all come before any."""
    chances = chances_of([(5 * S, 1), (6 * S, 1), (8 * S, 1), (20 * S, 4)], 0)
    for packets, wait in ((1, 12 * S), (2, 14 * S), (3, 15 * S)):
        assert longest_wait_ns(chances, packets * FULL_PACKET_BYTES, in_chances=True) == wait


@settings(deadline=None, max_examples=300)
@given(any_profile() | st.lists(st.integers(0, 50), min_size=1).map(sorted))
def test_a_trace_holds_what_was_written_or_it_is_refused(given):
    """Opportunities and their turn are all that a trace has."""
    if isinstance(given, list):
        ms = Counter(given)
        packets = tuple((t * MS, number) for t, number in sorted(ms.items()))
        given = Profile(packets=packets, repeat_ns=max(packets[-1][0], 1))
    try:
        text = FORMATS["mahimahi"].write(given, Options())
    except UnfitError:
        others = {name: steps for name, steps in given.columns.items() if name != "packets"}
        last = max((t for t, number in given.packets if number), default=None)
        assert any(others.values()) or last is None or given.repeat_ns != last or any(t % MS for t, _ in given.packets)
        return
    assert profiles("mahimahi", text)["forward"] == replace(
        given, packets=tuple(one for one in given.packets if one[1])
    )


@golden.each("profile that a format cannot hold", "case to table")
def test_what_a_format_cannot_hold_is_told(case, to, table, tmp_path, capsys):
    (path := tmp_path / "pass.csv").write_text(table)
    case.hold(refusal(typed, capsys, "profile", "export", str(path), "--to", to), tmp_path)


def test_changes_within_a_contact_are_contacts_and_columns_may_be_left_out(tmp_path, capsys):
    """Of a pass whose delay stays near 2 ms, whole seconds are 0 s; what that costs is said."""
    table = tmp_path / "pass.csv"
    table.write_text("t_s,rate_bit_s,delay_s,ber,up\n0,80,0.002,1e-6,0\n10,,,,1\n15,160,0.003,,\n20,,0.002,,0\n")
    said = typed(capsys, "profile", "export", str(table), "--to", "ion", "--without", "ber")
    assert said.out.splitlines() == [
        "a contact +10 +15 1 2 10",
        "a range +10 +15 1 2 0",
        "a contact +15 +20 1 2 20",
        "a range +15 +20 1 2 0",
    ]
    assert said.err == "note: delays are whole seconds in ion: at most 0.003 s from the profile's.\n"


def test_the_command(tmp_path, capsys):
    """Import, explain, draw and export, as a person types it."""
    plan = tmp_path / "plan.ionrc"
    plan.write_text(ION)
    table, picture = tmp_path / "pass.csv", tmp_path / "pass.svg"
    assert "8 times" in typed(capsys, "profile", "import", str(plan), "--link", "1-2", "--out", str(table)).err
    assert table.read_text() == "t_s,rate_bit_s,delay_s,up\n0,,,0\n60,80000,12,1\n3660,,14,\n7260,,,0\n"
    assert "1 times down and up again" in typed(capsys, "profile", "show", str(table)).out
    typed(capsys, "profile", "plot", str(table), "--out", str(picture))
    assert picture.stat().st_size > 1000
    again = typed(capsys, "profile", "export", str(table), "--to", "ion", "--nodes", "1-2").out
    assert again.splitlines() == [
        "a contact +60 +3660 1 2 10000",
        "a range +60 +3660 1 2 12",
        "a contact +3660 +7260 1 2 10000",
        "a range +3660 +7260 1 2 14",
    ]


def test_every_column_is_drawn():
    columns = {"rate_bps": ((0, 8),), "delay_ns": ((0, 8),), "ber": ((0, 0.1),), "up": ((0, True),)}
    assert len(drawn(Profile(**columns), "all").axes) == 4
    assert len(drawn(Profile(packets=((0, 3),)), "some").axes) == 1


def test_text_of_times_is_exact():
    assert seconds(1_000_000_001) == "1.000000001"
    assert seconds(0) == "0"
    assert Path(seconds(60 * S)).name == "60"


def test_ping_counts_in_16_bits_and_a_duplicate_is_no_reply():
    reply = "64 bytes from 1.1.1.1: icmp_seq={} ttl=58 time={} ms\n".format
    log = reply(65534, 20) + reply(65535, 30) + reply(65535, 430) + reply(0, 40) + reply(1, 50)
    found = FORMATS["ping"].read(log.encode(), "file", Options())
    assert found.profiles["forward"].delay_ns == ((0, 10 * MS), (S, 15 * MS), (2 * S, 20 * MS), (3 * S, 25 * MS))
    assert "0 of 4 probes" in found.notes[1]


def test_what_iperf3_omits_is_no_rate():
    """iperf3 -O: times begin again after what is omitted."""
    intervals = [
        {"sum": {"start": start, "bits_per_second": rate, "omitted": omitted}}
        for start, rate, omitted in ((0, 1e6, True), (1, 1e6, True), (0, 2e6, False), (1, 3e6, False))
    ]
    text = json.dumps({"intervals": intervals})
    assert profiles("iperf3", text)["forward"].rate_bps == ((0, 2_000_000), (S, 3_000_000))


def test_a_turn_that_ends_down_counts_as_down():
    said = "\n".join(explained(Profile(up=((0, True), (10 * S, False)), repeat_ns=15 * S)))
    assert "1 times down and up again, for at most 5 s" in said


PLACED = """kind: scenario
version: 1
title: Placed
topology: point_to_point
links: {{hop: {{forward: {{rate: 8 kbit/s, errors: {{ber: 1e-6}}, profile: {{steps: [{steps}]}}}}}}}}
workloads: [{{kind: bulk, name: transfer, from: h1, to: h2, size: 100 kB}}]
"""


@golden.each("profile of a link")
def test_what_does_not_fit_is_told_where_it_is(case, planned, tmp_path):
    case.hold(refusal(planned, PLACED.format(steps=case)), tmp_path)


def test_paths_do_not_say_of_a_profiled_link_what_only_holds_before(planned):
    text = PLACED.replace("errors: {{ber: 1e-6}}, ", "").format(
        steps="{at: 1 s, rate: 9 kbit/s, delay: 9 ms, state: down}"
    )
    lines = flows.paths_text({"r1": planned(text)}).splitlines()
    assert lines[2].endswith("profiles change this")
    assert lines[4].split("  ")[-3:] == ["as profiled", "as profiled", "–"]
    assert "profile" not in "".join(lines[5:])


def test_captions_and_drawings_do_not_either(planned):
    text = PLACED.replace("errors: {{ber: 1e-6}}, ", "").format(
        steps="{at: 1 s, rate: 9 kbit/s, delay: 9 ms, ber: 1e-5}"
    )
    plan = planned(text)
    said = conditions.said([conditions.facts_of(plan)])
    assert "rate as profiled there, " in said
    assert "delay as profiled there, " in said
    assert "BER as profiled there, 0 back" in said


def test_bit_errors_of_a_profile_stand_beside_lists_of_packets_and_outages(planned):
    text = PLACED.replace(
        "{{ber: 1e-6}}", "{{model: none, drop_packets: [1, 5], outages: [{{from: 2 s, to: 2300 ms}}]}}"
    )
    impairments = planned(text.format(steps="{at: 1 s, ber: 1e-5}")).cell.impairments
    found = next(one for one in impairments if one.errors.drop_packets).errors

    assert (found.model, found.drop_packets) == ("independent", (1, 5))
    assert found.outages == ((2 * S, 2_300 * MS),)
