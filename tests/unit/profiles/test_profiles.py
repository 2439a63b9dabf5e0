"""Profiles: each format against an example computed by hand, and hostile input."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scpslab.cli import app
from scpslab.core.errors import ScenarioError
from scpslab.core.problems import UnfitError
from scpslab.scenario.profiles.format import Options
from scpslab.scenario.profiles.formats import FORMATS, read
from scpslab.scenario.profiles.profile import Profile, seconds
from scpslab.scenario.profiles.words import drawn, explained

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


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("t_s,speed\n0,1\n", "file:1: found the columns"),
        ("t_s,rate_bit_s\n0,1,2\n", "file:2: found 3 cells"),
        ("t_s,rate_bit_s\n\n0,-1\n", "file:3: found"),
        ("t_s,rate_bit_s\n1,8\n1,9\n", "times that ascend"),
        ("t_s,up\n0,2\n", "file:2: found"),
        ("t_s,ber\n0,0.6\n", "0 to 0.5"),
        ("t_s,ber\n0,nan\n", "0 to 0.5"),
        ("t_s,rate_bit_s,packets\n0,8,1\n", "a rate beside opportunities"),
        ("# repeat_s: 1\nt_s,rate_bit_s\n0,8\n2,9\n", "a time after its last step"),
        ("t_s,rate_bit_s\n0,1e11\n", "0 to 10000000000"),
        ('t_s,rate_bit_s\n"0,8\n', "commas separate"),
        ("t_s,rate_bit_s\n", "a profile without steps"),
        ("", "no line with the names of columns"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_with_its_line(text, line):
    with pytest.raises(UnfitError, match=line):
        profiles("csv", text)


def test_opportunities_are_counted_and_never_averaged():
    """Three packets in millisecond 2 stay three at one instant, and the trace repeats after its last line."""
    found = profiles("mahimahi", "0\n2\n2\n2\n5\n", Options(delays=("delays", b"7\n7\n9\n"), delay_every_ns=2 * MS))

    assert found["forward"] == Profile(
        packets=((0, 1), (2 * MS, 3), (5 * MS, 1)), delay_ns=((0, 7 * MS), (4 * MS, 9 * MS)), repeat_ns=5 * MS
    )
    assert FORMATS["mahimahi"].write(found["forward"], Options()) == "0\n2\n2\n2\n5\n"


def test_turns_are_written_out():
    """The last opportunity of a turn and the first of the next may be at one time: they add up."""
    found = profiles("mahimahi", "0\n2\n5\n")["forward"].until(8 * MS)

    assert found.packets == ((0, 1), (2 * MS, 1), (5 * MS, 2), (7 * MS, 1))
    assert found.repeat_ns is None


@pytest.mark.parametrize("text", ["", "5\n3\n", "0\n", "1.5\n", "-1\n", "²\n", "1\n\n2\n"])
def test_no_trace(text):
    with pytest.raises(UnfitError):
        profiles("mahimahi", text)


ION = """
# a pass
1 1 ''
s
@ 2026/11/29-20:00:00
a contact +60 +7260 1 2 10000 0.9
a contact +60 +7260 2 1 1000
a range +0 +3660 1 2 12
a range 2026/11/29-21:01:00 +9000 2 1 13
"""


def test_ion_counts_bytes():
    """10,000 bytes per second are 80,000 bit/s; a range without one of its own holds for the other way too."""
    there, back = (profiles("ion", ION)[pair] for pair in ("1-2", "2-1"))

    assert there == Profile(
        rate_bps=((60 * S, 80_000),), delay_ns=((60 * S, 12 * S),), up=((0, False), (60 * S, True), (7260 * S, False))
    )
    assert back.rate_bps == ((60 * S, 8_000),)
    assert back.delay_ns == ((3660 * S, 13 * S),)


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a contact +10 +5 1 2 1\n", "its end after its start"),
        ("a contact +0 +10 1 2 1\na contact +5 +20 1 2 1\n", "do not overlap"),
        ("d contact +0 1 2\n", "only adds"),
        ("a contact 10 +20 1 2 1\n", "a time such as"),
        ("a contact +0 +20 one 2 1\n", "the number of a node"),
        ("a contact +0 +20 1 1 1\n", "at least one"),
    ],
)
def test_contact_plans_that_are_none(text, said):
    with pytest.raises(UnfitError, match=said):
        profiles("ion", text)


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


def test_files_that_are_none(tmp_path):
    (tmp_path / "a.xyz").write_text("")
    for path, said in ((tmp_path / "b.csv", "no such file"), (tmp_path, "suffix"), (tmp_path / "a.xyz", "--format")):
        with pytest.raises(ScenarioError, match=said):
            read(path, None, Options())
    with pytest.raises(ScenarioError, match="a.xyz: found no line"):
        read(tmp_path / "a.xyz", "csv", Options())


def typed(capsys, *words):
    app.program(list(words))(list(words), standalone_mode=False)
    return capsys.readouterr()


def test_the_command(tmp_path, capsys):
    """Import, explain, draw and export, as a person types it."""
    plan = tmp_path / "plan.ionrc"
    plan.write_text(ION)
    table, picture = tmp_path / "pass.csv", tmp_path / "pass.svg"
    assert "8 times" in typed(capsys, "profile", "import", str(plan), "--link", "1-2", "--out", str(table)).err
    assert table.read_text() == "t_s,rate_bit_s,delay_s,up\n0,,,0\n60,80000,12,1\n7260,,,0\n"
    assert "1 times down and up again" in typed(capsys, "profile", "show", str(table)).out
    typed(capsys, "profile", "plot", str(table), "--out", str(picture))
    assert picture.stat().st_size > 1000
    again = typed(capsys, "profile", "export", str(table), "--to", "ion", "--nodes", "1-2").out
    assert again == "a contact +60 +7260 1 2 10000\na range +60 +7260 1 2 12\n"


def test_every_column_is_drawn():
    columns = {"rate_bps": ((0, 8),), "delay_ns": ((0, 8),), "ber": ((0, 0.1),), "up": ((0, True),)}
    assert len(drawn(Profile(**columns), "all").axes) == 4
    assert len(drawn(Profile(packets=((0, 3),)), "some").axes) == 1


def test_text_of_times_is_exact():
    assert seconds(1_000_000_001) == "1.000000001"
    assert seconds(0) == "0"
    assert Path(seconds(60 * S)).name == "60"
