"""Every physical number that a handout, the notes, a marking or a solution states, computed again from the formula.

The number is read from the text: a text that says another one, or says it in other words, fails here. What a text says
of every variant is computed for all that can be drawn; what a solution says, for the practice variant.
"""

import math
import re

import pytest

from scpslab_course.course.answers import Evaluation, _right_number, read_practice, score_answer
from scpslab_course.course.assignment import HANDOUT, names
from scpslab_course.course.runs import run_of
from tests.unit.course.claims import (
    GEO_M,
    LIGHT_M_PER_S,
    TEXTS,
    Claim,
    answer,
    band,
    bdp_bytes,
    both,
    bounds,
    drawable,
    enough_of_trials,
    fixed,
    holes,
    in_solution,
    least,
    mathis_bps,
    mathis_window,
    measured,
    mistake,
    most,
    of_practice,
    overtaken,
    per,
    practice,
    prediction,
    rtt,
    said,
    slow_start_rounds,
    text,
)

FIRST, TRACE, NOISE, BLOAT = "first-steps", "read-a-trace", "corruption-or-congestion", "bufferbloat"
ACKS, PAPERS, OWN, SPACE = "ack-path", "three-papers", "write-your-own", "space-transport"
SPLIT, HANDOVER, DEEP, BUILD = "split-tcp", "hand-over", "deep-space", "build-a-transport"
FRAME_S = 1505 * 10 / 115_200
SGLS_S = 0.0233


def echo_s(v, payload):
    """The round-trip time of an echo request with IP's and ICMP's headers, on an idle link of the same rate back."""
    return rtt(v) + 2 * (payload + 28) * 8 / v.rate


CLAIMS = [
    Claim(FIRST, "handout", r"satellite is ([\d,]+) km", fixed(round(GEO_M / 1e3, -3))),
    Claim(FIRST, "handout", r"needs at least (\d+) ms up and down", fixed(2 * GEO_M / LIGHT_M_PER_S * 1e3)),
    Claim(FIRST, "handout", r"here (\d+) to (\d+) ms", bounds(lambda v: v.delay * 1e3)),
    Claim(FIRST, "notes", r"product lies between (\d+) and (\d+) kB", band(0)),
    Claim(FIRST, "notes", r"file takes (\d+) to (\d+) round trips", band(1)),
    Claim(
        FIRST,
        "notes",
        r"first four round trips \(10, 20, 40 and 80 of (\d+) packets\)",
        of_practice(lambda v: (rtt(v) + (1452 + 52) * 8 / v.rate) * v.rate / 8 / 1452),
    ),
    Claim(
        FIRST,
        "notes",
        r"are (\d\.\d+) s of payload, (\d\.\d+) s of headers",
        of_practice(lambda v: v.size * 8 / v.rate, lambda v: v.size / 1400 * 52 * 8 / v.rate),
    ),
    Claim(
        FIRST,
        "marking",
        r"time of small packets gives (\d\.\d) to (\d\.\d) % less",
        bounds(lambda v: 100 * (1 - echo_s(v, 56) / echo_s(v, 1472))),
    ),
    Claim(FIRST, "marking", r"headers, (\d+) of the (\d+) bytes of a packet", fixed(20 + 20 + 12, 1400 + 52)),
    Claim(FIRST, "marking", r"second cause: (\d\.\d) % of the bytes", fixed(100 * 52 / 1452)),
    Claim(FIRST, "answers", r"headers, (\d\.\d) %", fixed(100 * 52 / 1452)),
    Claim(
        FIRST,
        "write-up",
        r"speed-up was (\d\.\d), not (\d)",
        lambda name: [*measured(prediction("speedup"))(name), *of_practice(lambda v: bdp_bytes(v) / v.window)(name)],
    ),
    Claim(TRACE, "handout", r"the file has (\d+) segments", fixed(700_000 / 1400)),
    Claim(TRACE, "notes", r"has (\d+) to (\d+) retransmissions", band(0)),
    Claim(TRACE, "answers", r"rises from (\d+) ms to", of_practice(lambda v: v.delay * 1e3)),
    Claim(TRACE, "answers", r"no acknowledgement arrives for (\d\.\d) s", of_practice(lambda v: 0.9 - v.delay)),
    Claim(NOISE, "handout", r"sqrt\(3/2\) = (\d\.\d+) for b = 1", fixed(math.sqrt(1.5))),
    Claim(NOISE, "notes", r"Mathis' window is (\d+) to (\d+) segments", bounds(lambda v: mathis_window(v, 1e-6))),
    Claim(NOISE, "marking", r"window at 1e-6 is (\d+) to (\d+) segments", bounds(lambda v: mathis_window(v, 1e-6))),
    Claim(NOISE, "notes", r"At 1e-5 the window is (\d) segments", least(lambda v: mathis_window(v, 1e-5))),
    Claim(NOISE, "notes", r"At 1e-5 the window is (\d) segments", most(lambda v: mathis_window(v, 1e-5))),
    Claim(
        NOISE,
        "notes",
        r"scatters by some (\d) %",
        most(lambda v: 100 / math.sqrt(2 * 1e7 / v.segment * per(1e-6, v.segment + 52))),
    ),
    Claim(
        NOISE,
        "notes",
        r"which is (\d) to (\d) % too large at 1e-5",
        bounds(lambda v: 100 * (1e-5 * 8 * (v.segment + 52) / per(1e-5, v.segment + 52) - 1)),
    ),
    Claim(NOISE, "notes", r"goodput at 1e-6 lies between (\d+) and (\d+) kbit/s", band(1)),
    Claim(NOISE, "notes", r"product between (\d+) and (\d+) segments", band(0)),
    Claim(
        NOISE,
        "marking",
        r"without the 12 bytes of timestamps are (\d\.\d) to (\d\.\d) % away",
        bounds(lambda v: 100 * (1 - per(1e-5, v.segment + 40) / per(1e-5, v.segment + 52))),
    ),
    Claim(
        NOISE,
        "marking",
        r"changes the result by (\d\.\d) %, 40 bytes of headers by (\d\.\d) %",
        lambda name: [
            *most(lambda v: 100 * (1 - math.sqrt(per(1e-6, v.segment + 52) / (8e-6 * (v.segment + 52)))))(name),
            *most(lambda v: 100 * (math.sqrt(per(1e-6, v.segment + 52) / per(1e-6, v.segment + 40)) - 1))(name),
        ],
    ),
    Claim(
        NOISE,
        "marking",
        r"Data bits alone change it by (\d) %",
        least(lambda v: 100 * (math.sqrt(per(1e-6, v.segment + 52) / per(1e-6, v.segment)) - 1)),
    ),
    Claim(
        NOISE,
        "answers",
        r"rise from (\d+) ms to (\d+) ms before",
        of_practice(lambda v: rtt(v) * 1e3, lambda v: (rtt(v) + v.small_buffer * 8 / v.rate) * 1e3),
    ),
    Claim(NOISE, "answers", r"by the (\d+) ms of the full queue", of_practice(lambda v: v.small_buffer * 8e3 / v.rate)),
    Claim(NOISE, "answers", r"a window of (\d+) segments never", of_practice(lambda v: mathis_window(v, 1e-6))),
    Claim(NOISE, "answers", r"about (\d\.\d) % of the packets", of_practice(lambda v: 100 * per(1e-6, v.segment + 52))),
    Claim(
        NOISE,
        "write-up",
        r"with b = 1 gives (\d+) kbit/s at 1e-6; Reno reached (\d+)",
        lambda name: [*of_practice(lambda v: mathis_bps(v) / 1e3)(name), *measured(answer("reno_measured"))(name)],
    ),
    Claim(NOISE, "write-up", r"BBR at 1e-5 is (\d+) times", measured(answer("bbr_gain"))),
    Claim(NOISE, "write-up", r"neighbour got ([\d.]+) % of", measured(answer("neighbour_share"))),
    Claim(
        BLOAT, "handout", r"one packet of 1452 B already takes (\d+) to (\d+) ms", bounds(lambda v: 1452 * 8e3 / v.rate)
    ),
    Claim(BLOAT, "handout", r"a page of (\d+) packets", fixed(math.ceil(50_000 / 1400))),
    Claim(BLOAT, "notes", r"queue of 512 kB holds (\d+) to (\d+) times", bounds(lambda v: 512e3 / bdp_bytes(v))),
    Claim(BLOAT, "notes", r"each of which is now (\d+) to (\d+) s long", bounds(lambda v: 512e3 * 8 / v.rate + rtt(v))),
    Claim(BLOAT, "notes", r"product lies between (\d+) and (\d+) kB", band(0)),
    Claim(BLOAT, "notes", r"longest wait between ([\d.]+) and (\d+) s", band(1)),
    Claim(
        BLOAT,
        "notes",
        r"queue's share of the bandwidth-delay product, (\d\.\d+) to (\d\.\d+)",
        bounds(lambda v: 8e3 / bdp_bytes(v)),
    ),
    Claim(BLOAT, "marking", r"512 KiB, the nearest mistake, are (\d\.\d) % away", fixed(100 * (524_288 / 512_000 - 1))),
    Claim(BLOAT, "marking", r"the round trip makes at least (\d) %", least(lambda v: 100 * bdp_bytes(v) / 512e3)),
    Claim(BLOAT, "marking", r"the (\d) ms that the echo request itself takes", most(lambda v: 84 * 8e3 / v.rate)),
    Claim(BLOAT, "answers", r"until the (\d+) kB of the product", of_practice(lambda v: bdp_bytes(v) / 1e3)),
    Claim(
        BLOAT,
        "answers",
        r"echo time of (\d\.\d) s is the round trip of (\d\.\d+) s and a wait of (\d\.\d) s",
        of_practice(lambda v: rtt(v) + 512e3 * 8 / v.rate, rtt, lambda v: 512e3 * 8 / v.rate),
    ),
    Claim(
        BLOAT,
        "write-up",
        r"was (\d\.\d) s: the wait of (\d\.\d) s",
        of_practice(lambda v: rtt(v) + 512e3 * 8 / v.rate, lambda v: 512e3 * 8 / v.rate),
    ),
    Claim(
        ACKS, "handout", r"has (\d+) bytes of headers \((\d+) IP, (\d+) TCP, (\d+) timestamps", fixed(52, 20, 20, 12)
    ),
    Claim(ACKS, "notes", r"asymmetry lies between (\d\.\d) and (\d+)", band(0)),
    Claim(ACKS, "marking", r"k is at least (\d\.\d) % too large", least(lambda v: 100 * 52 / v.segment)),
    Claim(ACKS, "marking", r"number is at least (\d\.\d) % too large", least(lambda v: 100 * 52 / v.segment)),
    Claim(
        ACKS,
        "answers",
        r"channel of ([\d.]+) kbit/s, which takes (\d\.\d) s",
        of_practice(lambda v: v.ack_rate / 1e3, lambda v: 100 * 52 * 8 / v.ack_rate),
    ),
    Claim(
        ACKS, "answers", r"return channel, (\d+) acknowledgements a second", of_practice(lambda v: v.ack_rate / 8 / 52)
    ),
    Claim(
        ACKS,
        "answers",
        r"asymmetry: ([\d.]+) bound: (\d+) kbit/s fewest: (\d)",
        of_practice(
            # RFC 3449 §2: the ratio of packet rates.
            lambda v: (v.rate / (8 * (v.segment + 52))) / (v.ack_rate / (8 * 52)),
            lambda v: v.ack_rate / (8 * 52) * 2 * 8 * v.segment / 1e3,
            lambda v: math.ceil(v.rate / (v.segment + 52) * 52 / v.ack_rate),
        ),
    ),
    Claim(PAPERS, "handout", r"stop bits are ([\d,]+) B/s", fixed(115_200 / 10)),
    Claim(
        PAPERS,
        "handout",
        r"too large by (\d) to (\d) %",
        bounds(lambda v: 100 * (v.ber * 8 * 1505 / per(v.ber, 1505) - 1)),
    ),
    Claim(PAPERS, "notes", r"A frame takes (\d+) ms", fixed(FRAME_S * 1e3)),
    Claim(PAPERS, "notes", r"near path holds (\d\.\d) of one in a round trip", fixed(2 * 0.0263 / FRAME_S)),
    Claim(PAPERS, "notes", r"the far path (\d\.\d) to (\d\.\d)\.", bounds(lambda v: 2 * (v.delay + SGLS_S) / FRAME_S)),
    Claim(PAPERS, "notes", r"Between (\d+) and (\d+) percent of full frames", band(0)),
    Claim(
        PAPERS,
        "answers",
        r"([\d,]+) B/s for (\d\.\d+) s are (\d+) bytes",
        of_practice(
            lambda v: 11_520, lambda v: 2 * (v.delay + SGLS_S), lambda v: round(2 * (v.delay + SGLS_S) * 11_520, -2)
        ),
    ),
    Claim(
        PAPERS,
        "answers",
        r"stay near the (\d+) s that ([\d.]+) % of lost frames leave",
        of_practice(lambda v: v.size / 1448 * 1505 / 11_520 / (1 - per(v.ber, 1505)), lambda v: 100 * per(v.ber, 1505)),
    ),
    Claim(
        OWN, "handout", r"A packet has (\d+) B on the hop, and (\d+) B of them are data", fixed(956 + 16 + 8 + 20, 956)
    ),
    Claim(OWN, "handout", r"queue has room for (\d+) packets", fixed(20_000 / 1000)),
    Claim(OWN, "notes", r"Between (\d+) and (\d+) packets are in flight", band(0)),
    Claim(
        OWN,
        "answers",
        r"on_their_way: (\d+) one_measured: ([\d.]+) kbit/s",
        of_practice(
            lambda v: v.rate * rtt(v) / 8000,
            # One round trip, the packet and its answer.
            lambda v: 956 * 8 / (rtt(v) + (1000 + 60) * 8 / v.rate) / 1e3,
        ),
    ),
    Claim(OWN, "write-up", r"queue holds (\d+) of (\d+) packets", fixed(20, math.ceil(100_000 / 956))),
    Claim(SPACE, "handout", r"sends (\d+) datagrams", fixed(math.ceil(400_000 * 10 / 8 / 1400))),
    Claim(SPACE, "notes", r"(\d+) to (\d+) packets fit into a round trip", bounds(lambda v: bdp_bytes(v) / 1456)),
    Claim(SPACE, "notes", r"With (\d+) to (\d+) % of the packets lost", bounds(lambda v: 100 * per(v.ber, 1456))),
    Claim(SPACE, "marking", r"products: (\d+) to (\d+) packets on the fast hop", bounds(lambda v: bdp_bytes(v) / 1456)),
    Claim(
        SPACE,
        "answers",
        r"times (\d\.\d+) s = (\d+) kB, about (\d+) packets of (\d+) bytes",
        of_practice(rtt, lambda v: bdp_bytes(v) / 1e3, lambda v: bdp_bytes(v) / 1456, lambda v: 1400 + 52 + 4),
    ),
    Claim(SPACE, "answers", r"the product is (\d+) bytes", of_practice(lambda v: 9600 * rtt(v) / 8)),
    Claim(
        SPACE,
        "answers",
        r"and (\d+) of the others' (\d+) datagrams",
        lambda name: [*measured(answer("others_lost"))(name), math.ceil(400_000 * 10 / 8 / 1400)],
    ),
    Claim(SPACE, "write-up", r"a gain of (\d+)\. My errors", fixed(88 / 8)),
    Claim(SPLIT, "notes", r"object of (\d+) to (\d+) kB needs three windows", bounds(lambda v: v.object / 1e3)),
    Claim(SPLIT, "notes", r"Objects have (\d+) to (\d+) segments", bounds(lambda v: math.ceil(v.object / 1400))),
    Claim(SPLIT, "notes", r"product lies between (\d+) and (\d+) kB", band(0)),
    Claim(SPLIT, "notes", r"as small as the loss of (\d) %", fixed(100 * per(1e-6, 1456))),
    Claim(SPLIT, "marking", r"takes three round trips for (\d+) to (\d+)\.", fixed(10 + 20 + 1, 10 + 20 + 40)),
    Claim(SPLIT, "marking", r"goodput 94 against (\d+) % of", fixed(100 * 1400 / (1400 + 52 + 4))),
    Claim(SPLIT, "oral", r"LAN (\d) ms, hop", fixed(2 * 0.5)),
    Claim(SPLIT, "oral", r"practice variant: 2\.2 and not (\d\.\d) s", of_practice(rtt)),
    Claim(SPLIT, "oral", r"in the practice variant (\d\.\d) MB", measured(mistake("acknowledged", 1, 1e-3))),
    Claim(
        SPLIT,
        "answers",
        r"object has (\d+) segments\. .* windows of 10, 20 and (\d+), .* trips of ([\d.]+) s pass, ([\d.]+) s;",
        of_practice(
            lambda v: math.ceil(v.object / 1400), lambda v: math.ceil(v.object / 1400) - 30, rtt, lambda v: 4 * rtt(v)
        ),
    ),
    Claim(
        SPLIT,
        "answers",
        r"took 2\.20 s\. .* takes ([\d.]+) s, which is the connection, one .* close, and ([\d.]+) s on the hop",
        lambda name: [
            (split := 2.20 / measured(answer("page_measured"))(name)[0]),
            split - 2 * of_practice(rtt)(name)[0],
        ],
    ),
    Claim(SPLIT, "answers", r"hop: (\d) % of the packets are corrupt", fixed(100 * per(1e-6, 1456))),
    Claim(
        SPLIT,
        "answers",
        r"67\.1 s, .* keep the rate: (\d\.\d) s\. .* takes ([\d.]+) s instead",
        measured(
            lambda expected: 67.1 / answer("noise_measured")(expected),
            lambda expected: 67.1 / answer("noise_measured")(expected) * prediction("bbr_gain")(expected),
        ),
    ),
    Claim(
        SPLIT,
        "answers",
        r"4\.69 s and the pair of gateways ([\d.]+) s: a round trip is ([\d.]+) s, .* take ([\d.]+) % of the rate",
        measured(
            lambda expected: 4.69 / answer("short_measured")(expected),
            lambda expected: 2 * (0.012 + 2 * 0.0005),
            lambda expected: 100 * (1 - answer("short_measured")(expected)),
        ),
    ),
    Claim(
        SPLIT,
        "answers",
        r"round trip of ([\d.]+) s are ([\d.]+) Mbit/s of (\d)\.",
        of_practice(rtt, lambda v: 128e3 * 8 / rtt(v) / 1e6, lambda v: v.rate / 1e6),
    ),
    Claim(
        SPLIT,
        "answers",
        r"acknowledged (\d+) kB, and the server's program got (\d+) kB: (\d+) kB were",
        measured(answer("acknowledged"), mistake("acknowledged", 1), answer("lost")),
    ),
    Claim(
        SPLIT,
        "write-up",
        r"page, and it is ([\d.]+)\. .* it is ([\d.]+), and BBR's factor is ([\d.]+) .* by ([\d.]+) %\. .* are ([\d.]+) p",
        measured(
            answer("page_measured"),
            answer("noise_measured"),
            prediction("bbr_gain"),
            lambda expected: 100 * (1 - answer("short_measured")(expected)),
            prediction("lost_products"),
        ),
    ),
    Claim(SPLIT, "write-up", r"the buffer allows ([\d.]+)\.", of_practice(lambda v: 128e3 * 8 / rtt(v) / 1e6)),
    Claim(HANDOVER, "handout", r"sin 10° = ([\d.]+)", fixed(math.sin(math.radians(10)))),
    Claim(HANDOVER, "handout", r"near by, at ([\d,]+) km/s", fixed(LIGHT_M_PER_S / 1e3)),
    Claim(HANDOVER, "handout", r"is (\d+) to (\d+) km of fibre", bounds(lambda v: round(v.fibre, -2))),
    Claim(
        HANDOVER,
        "handout",
        r"some (\d+) to (\d+) km \| you took h / sin e",
        bounds(lambda v: round(v.altitude / math.sin(math.radians(10)), -2)),
    ),
    Claim(HANDOVER, "notes", r"In `steps` (\d+) to (\d+) packets are overtaken", bounds(overtaken)),
    Claim(HANDOVER, "notes", r"so that (\d+) to (\d+) packets are overtaken", bounds(overtaken)),
    Claim(
        HANDOVER,
        "notes",
        r"is ([\d.]+) to ([\d.]+) times a quarter of the smallest",
        bounds(lambda v: (v.far - v.near) / (2 * v.near / 4)),
    ),
    Claim(HANDOVER, "notes", r"one way \((\d+) to (\d+) ms\)", bounds(lambda v: v.far_server * 1e3)),
    Claim(HANDOVER, "notes", r"one of (\d+) to (\d+) holes in each", bounds(lambda v: math.ceil(holes(v)))),
    Claim(HANDOVER, "notes", r"round trip, which takes (\d) s\.", least(lambda v: holes(v) * 2 * v.near_server)),
    Claim(HANDOVER, "notes", r"round trip, which takes (\d) s\.", most(lambda v: holes(v) * 2 * v.near_server)),
    Claim(HANDOVER, "notes", r"is (\d+) to (\d+) % above the product", bounds(lambda v: 100 * (v.slack - 1))),
    Claim(
        HANDOVER,
        "steps",
        r"window is (\d+) to (\d+) % more than",
        bounds(lambda v: 100 * (66_000 * 8 / (2 * v.far * v.rate) - 1)),
    ),
    Claim(HANDOVER, "marking", r"1400 bytes for a packet are ([\d.]+) % away", fixed(100 * (1452 / 1400 - 1))),
    Claim(
        HANDOVER,
        "marking",
        r"up or down, which is ([\d.]+) % at most",
        most(lambda v: 100 * max(math.ceil(holes(v)) / holes(v) - 1, 1 - math.floor(holes(v)) / holes(v))),
    ),
    Claim(HANDOVER, "marking", r"\(NewReno\), (\d+) to (\d+) holes", bounds(lambda v: math.ceil(holes(v)))),
    Claim(HANDOVER, "answers", r"the delay falls by ([\d.]+) ms", of_practice(lambda v: (v.far - v.near) * 1e3)),
    Claim(HANDOVER, "answers", r"round trip was ([\d.]+) ms shorter", of_practice(lambda v: (v.far - v.near) * 1e3)),
    Claim(
        HANDOVER,
        "answers",
        r"smallest one \(([\d.]+) / 4 = ([\d.]+) ms\)",
        of_practice(lambda v: 2e3 * v.near, lambda v: 2e3 * v.near / 4),
    ),
    Claim(
        HANDOVER,
        "answers",
        r"trip is (\d+) ms before and (\d+) ms after .* CUBIC repairs all (\d+) by SACK",
        of_practice(lambda v: 2e3 * v.far_server, lambda v: 2e3 * v.near_server, lambda v: math.ceil(holes(v))),
    ),
    Claim(
        HANDOVER,
        "answers",
        r"which costs ([\d.]+) s\. .* These are ([\d.]+) s, as .* it costs ([\d.]+) s\. .* s on: ([\d.]+) s, a fifth",
        measured(mistake("old_cost", 1), answer("old_repair"), answer("old_cost"), mistake("old_cost", 2)),
    ),
    Claim(
        HANDOVER,
        "answers",
        r"since 15\.40 s: ([\d.]+) s\. .* from 15\.74 s on: ([\d.]+) s\.",
        measured(mistake("cubic_cost", 1, 1e-3), lambda expected: answer("cubic_cost")(expected) / 1e3),
    ),
    Claim(
        HANDOVER,
        "answers",
        r"packets of ([\d,]+) in 15 s",
        of_practice(lambda v: round(15 * v.rate / 8 / 1452, -3)),
    ),
    Claim(
        HANDOVER,
        "answers",
        r"0\.46 s of each 15 s, (\d) %, and Reno of 1997 ([\d.]+) s, (\d) %",
        measured(
            lambda expected: 100 * 0.46 / 15,
            mistake("old_cost", 2),
            lambda expected: 100 * mistake("old_cost", 2)(expected) / 15,
        ),
    ),
    Claim(
        HANDOVER,
        "write-up",
        r"there were (\d+)\. .* costs CUBIC ([\d.]+) times its length .* It is ([\d.]+):",
        measured(prediction("false_resends"), prediction("cost_400"), prediction("short_or_long")),
    ),
    # Perihelion and aphelion of Mars, and the aphelion of the Earth, in millions of km.
    Claim(DEEP, "handout", r"from (\d+) to (\d+) million km", fixed(206.65 - 152.10, 249.26 + 152.10)),
    Claim(DEEP, "handout", r"light covers ([\d,]+) km", fixed(LIGHT_M_PER_S / 1e3)),
    Claim(
        DEEP,
        "handout",
        r"signal takes (\d+) to (\d+) minutes",
        fixed(*(distance * 1e9 / LIGHT_M_PER_S / 60 for distance in (206.65 - 152.10, 249.26 + 152.10))),
    ),
    Claim(DEEP, "handout", r"yours takes at most (\d+)\.", most(lambda v: v.delay / 60)),
    # TCP_RTO_MIN, doubled each time up to TCP_RTO_MAX.
    Claim(DEEP, "handout", r"15, in all ([\d.]+) s", fixed(sum(min(0.2 * 2**sent, 120) for sent in range(15 + 1)))),
    Claim(DEEP, "notes", r"gives up after ([\d.]+) s", measured(answer("gives_up"))),
    Claim(DEEP, "notes", r"six repetitions gives (\d+) s", fixed(sum(2**sent for sent in range(6 + 1)))),
    # net.ipv4.tcp_syn_linear_timeouts is 4.
    Claim(DEEP, "notes", r"says (\d+) s in all", fixed(4 + sum(2**sent for sent in range(6 + 1)))),
    Claim(DEEP, "notes", r"so it expires (\d) to (\d) times", bounds(lambda v: math.ceil(rtt(v) / 120) - 1)),
    Claim(DEEP, "marking", r"the file is ([\d.]+) to ([\d.]+) % of it", bounds(lambda v: 100 * v.size / bdp_bytes(v))),
    Claim(DEEP, "oral", r"times (\d\.\d) million km per second", fixed(LIGHT_M_PER_S / 1e9)),
    Claim(DEEP, "oral", r"about (\d+) s\. Repetitions double", measured(answer("gives_up"))),
    Claim(DEEP, "oral", r"Knows that (\d+) is the rule", fixed(sum(2**sent for sent in range(6 + 1)))),
    Claim(
        DEEP,
        "answers",
        r"TCP sent (\d+) segments again, .*; (\d+) of these are timeouts",
        measured(answer("tcp_resent"), mistake("tcp_resent", 0)),
    ),
    Claim(
        DEEP,
        "answers",
        r"round trip is (\d+) s, .* takes (\d+) s, or ([\d.]+) round trips",
        lambda name: [
            of_practice(rtt)(name)[0],
            (taken := practice(name).size * 8 / measured(answer("tcp_goodput"))(name)[0]),
            taken / of_practice(rtt)(name)[0],
        ],
    ),
    Claim(
        DEEP,
        "answers",
        r"takes ([\d.]+) MB in a round trip of (\d+) minutes\. .* file of (\d+) kB",
        of_practice(lambda v: bdp_bytes(v) / 1e6, lambda v: rtt(v) / 60, lambda v: v.size / 1e3),
    ),
    Claim(
        DEEP,
        "write-up",
        r"after (\d+) s: .* found (\d+), .* is (\d+) s, three .* takes ([\d.]+) times .* takes ([\d.]+) round trips",
        measured(
            answer("gives_up"), answer("tcp_resent"), prediction("told_s"), answer("snack_ratio"), answer("file_rounds")
        ),
    ),
    Claim(BUILD, "handout", r"has 60 kB and is cut into (\d+) parts", fixed(math.ceil(60_000 / 968))),
    Claim(
        BUILD,
        "handout",
        r"this efficiency: (\d+) % of `alone`, and ([\d.]+) \(1\); (\d+) % of `alone`, and ([\d.]+) \(2\); a utilization "
        r"of ([\d.]+) and ([\d.]+) \(3\); (\d+) % of the rate .* reads, and ([\d.]+) \(4\); ([\d.]+) and ([\d.]+) \(5\)",
        lambda name: [
            float(enough) * (100 if index in (0, 2, 6) else 1) for index, enough in enumerate(enough_of_trials(name))
        ],
    ),
    Claim(BUILD, "notes", r"(\d+) to (\d+) packets fill the far hop", band(0)),
    Claim(BUILD, "answers", r"hop hold (\d+) packets", of_practice(lambda v: v.far_rate * 2 * v.far_delay / 8000)),
    Claim(BUILD, "answers", r"at most (\d) packets of its buffer of 8 kB", fixed(8000 // 1000)),
    Claim(BUILD, "answers", r"the queue of (\d+) packets", fixed(12_000 // 1000)),
    Claim(BUILD, "answers", r"up to (\d) s; everything", in_solution(r"LONGEST_TIMEOUT = [\d.]+, ([\d.]+)")),
    Claim(BUILD, "answers", r"each of the next (\d+)\.", in_solution(r"BITS = (\d+)")),
    Claim(
        BUILD,
        "write-up",
        r"goodput and found (\d+); .* and found (\d+) %",
        measured(answer("carousel_measured"), prediction("carousel_efficiency")),
    ),
    Claim(
        BUILD,
        "write-up",
        r"sum for `alone` gives ([\d.]+)\. .* two delays of ([\d.]+) s",
        lambda name: [
            measured(answer("alone"))(name)[0] * 1e3 / practice(name).rate,
            *of_practice(lambda v: v.far_delay)(name),
        ],
    ),
    Claim(
        DEEP, "marking", r'"(\d+)" share: 0\.5 comment: >- This is 1 \+', fixed(sum(2**sent for sent in range(6 + 1)))
    ),
    Claim(DEEP, "marking", r'"(\d+)", share: 0\.5, .* documentation', fixed(4 + sum(2**sent for sent in range(6 + 1)))),
    Claim(HANDOVER, "questions", r"A full packet has (\d+) bytes", fixed(1400 + 52)),
    # IP 20, UDP 8, and the number of 4.
    Claim(BUILD, "questions", r"1000 B (\d+) B are data; .* has (\d+) B\.", fixed(1000 - 28 - 4, 28 + 4)),
    Claim(BUILD, "questions", r"The file has (\d+) parts", fixed(math.ceil(60_000 / 968))),
]


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_a_number_in_a_text_is_the_one_of_the_formula(claim):
    found = re.findall(claim.pattern, text(claim.name, claim.which))
    assert len(found) == 1, f"{claim}: found {len(found)} times"
    numbers = (found[0],) if isinstance(found[0], str) else found[0]
    exact = claim.exact(claim.name)
    assert len(numbers) == len(exact)
    for number, value in zip(numbers, exact, strict=True):
        decimals = len(number.partition(".")[2])
        assert abs(said(number) - value) <= 0.5 * 10**-decimals + 1e-9, f"{claim}: says {number}; computed {value:g}"


def test_slow_start_of_first_steps_takes_the_round_trips_that_the_notes_say():
    words = {"three": 3, "four": 4, "five": 5}
    low, high = re.findall(r"slow start takes (\w+) to (\w+) round trips", text(FIRST, "notes"))[0]
    rounds = {slow_start_rounds(v) for v in drawable(FIRST)}
    assert (words[low], words[high]) == (min(rounds), max(rounds))


@pytest.mark.parametrize(
    ("name", "says", "size", "fewest", "most"),
    [
        (SPLIT, "needs three windows of slow start", "object", 3, 3),
        (DEEP, "Without the timers five rounds would do at most: 10, 20, 40, 80 and the rest", "size", 4, 5),
    ],
)
def test_slow_start_sends_a_file_in_the_rounds_that_the_notes_say(name, says, size, fewest, most):
    assert says in text(name, "notes")
    segments = [math.ceil(getattr(v, size) / 1400) for v in drawable(name)]
    rounds = {next(doubled for doubled in range(12) if 10 * (2**doubled - 1) >= one) for one in segments}
    assert (min(rounds), max(rounds)) == (fewest, most)


def test_the_outages_of_hand_over_end_when_the_marking_says():
    assert (
        "50 ms must be less than one way. Probe and timeout must come after the outages of 100 and 150 ms, and before the "
        "end of that of 400 ms."
    ) in text(HANDOVER, "marking")
    for v in drawable(HANDOVER):
        assert v.far_server > 0.05
        for timer in (2 * 2 * v.far_server, 2 * v.far_server + 0.2):
            assert 0.15 < timer < 0.4 - v.near_server


def test_the_gain_of_the_file_that_split_tcp_shows_is_that_of_the_practice_variant():
    shown = re.findall(r"│ geo │ (?:cubic|split) │ kernel cubic │ ([\d.]+) │", text(SPLIT, "handout"))
    cubic, split = map(float, shown)
    # Times have four digits.
    assert cubic / split == pytest.approx(
        mistake("noise_measured", 2)(read_practice(both(SPLIT)[0]).expected), rel=1e-3
    )


def test_a_third_round_of_the_carousel_is_as_likely_as_the_notes_say():
    """Some part is lost twice; loss is drawn evenly from its values."""
    values = [float(one.removesuffix(" %")) / 100 for one in both(BUILD)[0].file.variant["loss"].values]
    likely = sum(1 - (1 - loss**2) ** 62 for loss in values) / len(values)
    assert f"a third one, in {['', 'one', 'two', 'three', 'four'][round(5 * likely)]} variants of five" in text(
        BUILD, "notes"
    )


def test_the_points_of_each_program_are_the_sum_of_its_shares():
    rows = re.findall(
        r"^\| `(\w+)` \| (\d) \| (.*) \|$", (both(BUILD)[0].folder / TEXTS["notes"]).read_text(), re.MULTILINE
    )
    points = {
        name: trial.points for file in (both(BUILD)[0].file, both(BUILD)[1].file) for name, trial in file.trials.items()
    }
    assert {name: int(of) for name, of, _ in rows} == points
    shares = zip(*([float(one) for one in row.split(" | ")] for *_, row in rows), strict=True)
    sums = [sum(share * int(of) for share, (_, of, _) in zip(column, rows, strict=True)) for column in shares]
    told = re.findall(
        r"points of 26 \| \| (.*?) \|$", (both(BUILD)[0].folder / TEXTS["notes"]).read_text(), re.MULTILINE
    )[0]
    assert [float(one) for one in told.split(" | ")] == pytest.approx(sums, abs=0.05 + 1e-9)


@pytest.mark.parametrize("name", names())
def test_the_table_of_what_is_marked_has_all_points(name):
    file = both(name)[0].file
    table = (both(name)[0].folder / HANDOUT).read_text().partition("## What is marked\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (\d+) \|", table, re.MULTILINE)
    assert sum(int(points) for _, points in rows) == file.points
    for part, points in rows:
        answers = part.replace("`", "").split(", ")
        if set(answers) <= set(file.answers):
            assert sum(file.answers[one].points for one in answers) == int(points), part


def test_the_product_is_as_right_for_every_variant_as_the_marking_says():
    """With full packets' time, small ones', and twice the delay; with three digits, of times as `ping` shows them."""
    assignment, marking = both(FIRST)
    shares = set()
    for v in drawable(FIRST):
        times = {payload: round(1000 * echo_s(v, payload)) for payload in (1472, 56)}
        rows = [{"payload": f"{one} B", "rtt_mean_ms": str(ms), "status": "completed"} for one, ms in times.items()]
        evaluation = Evaluation(marking, vars(v), {"round-trip": rows})
        right = _right_number(evaluation, ("answers", "bdp"), marking.file.answers["bdp"])
        given = (f"{v.rate * ms / 8e6:.3g}" for ms in (times[1472], times[56], 1000 * rtt(v)))
        shares.add(tuple(score_answer(assignment.file.answers["bdp"], right, one).share for one in given))
    assert shares == {(1, 0.7, 0.7)}


def test_codels_settings_have_the_shares_that_the_handout_gives():
    """RFC 8289 §4.3: the target is 5 to 10 % of the interval."""
    handout = text(BLOAT, "handout")
    target = float(re.findall(r"CoDel with a target of (\d+) ms and this interval", handout)[0])
    short = float(re.findall(r"CoDel's usual (\d+) ms", handout)[0])
    low, high = map(float, re.findall(r"usually 5 ms, (\d+) to (\d+) % of the interval", handout)[0])
    assert low <= 100 * target / 600 <= high
    assert "`codel-100ms`, whose target is half of its interval" in handout
    assert target / short == 0.5
    assert (
        f"codel_target: {target:.0f} ms, codel_interval: {short:.0f} ms"
        in (both(BLOAT)[0].folder / "uplink.yaml").read_text()
    )


@pytest.mark.parametrize("name", [NOISE, BLOAT, ACKS, PAPERS, SPACE, SPLIT, HANDOVER, DEEP])
def test_a_handout_counts_the_cells_that_run(name, tmp_path):
    assignment, _ = both(name)
    drawn = read_practice(assignment).variant.parameters
    cells = sum(len(run_of(assignment, drawn, one, tmp_path).cells) for one in assignment.file.scenarios)
    assert re.findall(r"assignment run` runs (?:the )?(\d+) cells", text(name, "handout")) == [str(cells)]
    assert set(re.findall(r"(\d+) cells", text(name, "notes"))) <= {str(cells)}


@pytest.mark.parametrize(
    ("name", "pattern", "value"),
    [
        (SPLIT, r"there ([\d.]+) to ([\d.]+) times as soon", prediction("page_gain")),
        (SPLIT, r"a factor of ([\d.]+) to ([\d.]+) over the clean", mistake("noise_measured", 2)),
        (SPLIT, r"and (\d+) to (\d+) over the noisy one with CUBIC", prediction("noise_gain")),
        (SPLIT, r"stays within ([\d.]+) to ([\d.]+) there", prediction("bbr_gain")),
        (SPLIT, r"gateways are (\d) to (\d) % slower", lambda expected: 100 * (1 - answer("short_measured")(expected))),
        (HANDOVER, r"CUBIC sends (\d+) to (\d+) again", prediction("false_resends")),
        (HANDOVER, r"last digit: ([\d.]+) to ([\d.]+) s for Reno", mistake("old_cost", 2)),
    ],
)
def test_the_range_that_notes_give_of_what_is_measured_has_the_practice_variant(name, pattern, value):
    ((low, high),) = re.findall(pattern, text(name, "notes"))
    assert float(low) <= value(read_practice(both(name)[0]).expected) <= float(high)


EXPECTED = re.compile(r"Your numbers differ(?:: |\. )``` (.*?) ```|``` ([^`]*[│|][^`]*) ``` Your numbers differ")
SHOWN = {
    FIRST: answer("rtt"),
    NOISE: lambda expected: expected.answers["reno_measured"].value * 1e3,
    BLOAT: answer("ecn_saves"),
    OWN: lambda expected: expected.answers["one_measured"].value * 1e3,
    DEEP: answer("tcp_goodput"),
    BUILD: lambda expected: expected.answers["carousel_measured"].value * 1e3,
    # At the rate, with the headers of each packet: slow start and round trips add less than a percent.
    HANDOVER: lambda _: 40e6 * 8 * 1452 / 1400 / practice(HANDOVER).rate,
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_lines_that_a_handout_shows_are_those_of_the_practice_variant(name):
    """Within 2 %: a new kernel draws other ports and sequence numbers, and with them other times."""
    after, before = EXPECTED.findall(text(name, "handout"))[0]
    shown = [said(one) for one in re.findall(r"[\d,]*\d(?:\.\d+)?", after + before)]
    value = SHOWN[name](read_practice(both(name)[0]).expected)
    assert any(one == pytest.approx(value, rel=0.02) for one in shown), (value, shown)


# The sample of write-your-own is one packet for each round trip, which everybody can compute.
@pytest.mark.parametrize("name", [name for name in names() if name != OWN])
def test_no_line_that_a_handout_shows_has_a_number_that_is_to_be_predicted(name):
    lines = "".join(after + before for after, before in EXPECTED.findall(text(name, "handout")))
    shown = [said(one) for one in re.findall(r"[\d,]*\d(?:\.\d+)?", lines)]
    truths = [one for one in read_practice(both(name)[0]).expected.predictions.values() if isinstance(one, float)]
    near = [one for one in shown if one != 1 for truth in truths if one == pytest.approx(truth, rel=0.02)]
    assert near == []
