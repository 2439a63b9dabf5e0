"""Packets over drawn vectors: the first, the first kilobit, every later one and the seam are hit as often as the
models' closed forms say, over many seeds.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from scipy import stats

from scpslab.core.seeds import stream
from scpslab.plan.error_models import MODELS, Errors
from scpslab.scenario import vectors
from scpslab.scenario.vectors import Draws, gap_vector

from scpslab.kinds.errors.gilbert_elliott import scenario as gilbert_elliott

pytestmark = pytest.mark.slow

SEEDS, PACKETS, PACKET_BITS = 10_000, 100, 12_000
# Numbers in the vectors of these tests: few, but more than the errors in so many packets.
FEW = 512
# Seeds are fixed; two-sided, for 102 places of five models together less than one chance in a thousand.
LEAST_CHANCE = 1e-6

CASES = {
    "independent": ("independent", {"ber": 1e-5}),
    "clustered, the quietest of FY97": (
        "clustered",
        {"ber": 1e-6, "mean_errors_per_burst": 4.0, "mean_gap_in_burst": 3.0},
    ),
    "clustered": ("clustered", {"ber": 2e-5, "mean_errors_per_burst": 4.0, "mean_gap_in_burst": 3.0}),
    "wide clusters": ("clustered", {"ber": 1e-4, "mean_errors_per_burst": 10.0, "mean_gap_in_burst": 500.0}),
    "gilbert-elliott": ("gilbert-elliott", {"p_good_bad": 2e-6, "p_bad_good": 2e-5, "ber_good": 1e-6, "ber_bad": 2e-4}),
}
every_case = pytest.mark.parametrize(("model", "settings"), CASES.values(), ids=CASES)


def vector(model, settings, seed, n=FEW):
    common = {"action": "drop", "drop_packets": (), "drop_min_bytes": 0, "outages": ()}
    return gap_vector(
        Errors(model=model, settings=MODELS[model](**settings), seed=seed, vector_errors=n, **common)
    ).astype(np.int64)


def clean(model, settings, bits):
    """The chance that a run of bits at any place has no error."""
    if model == "independent":
        return (1 - settings["ber"]) ** bits
    if model == "clustered":
        mean, inner = settings["mean_errors_per_burst"], settings["mean_gap_in_burst"]
        outer = mean / settings["ber"] - (mean - 1) * inner
        share = outer / (outer + (mean - 1) * inner)
        return share * (1 - 1 / outer) ** bits + (1 - share) * (1 - 1 / inner) ** bits
    leave_good, leave_bad = settings["p_good_bad"], settings["p_bad_good"]
    stay = np.array([[1 - leave_good, leave_good], [leave_bad, 1 - leave_bad]])
    right = np.diag([1 - settings["ber_good"], 1 - settings["ber_bad"]])
    state = np.array([leave_bad, leave_good]) / (leave_good + leave_bad)
    return float(state @ np.linalg.matrix_power(right @ stay, bits) @ np.ones(2))


@every_case
def test_every_packet_from_the_first_on_is_hit_as_often_as_any(model, settings, monkeypatch):
    monkeypatch.setattr(gilbert_elliott, "BLOCK", 256)
    hits, kilobit = np.zeros(PACKETS, dtype=int), 0
    for number in range(SEEDS):
        positions = np.cumsum(vector(model, settings, stream(1, model, number))) - 1
        packets = np.unique(positions // PACKET_BITS)
        hits[packets[packets < PACKETS]] += 1
        kilobit += positions[0] < 1000

    per_packet, per_kilobit = 1 - clean(model, settings, PACKET_BITS), 1 - clean(model, settings, 1000)
    chances = [stats.binomtest(int(count), SEEDS, per_packet).pvalue for count in hits]
    assert min(chances) > LEAST_CHANCE, (hits, SEEDS * per_packet)
    assert stats.binomtest(int(kilobit), SEEDS, per_kilobit).pvalue > LEAST_CHANCE


@pytest.mark.parametrize(
    ("model", "settings"), [CASES["independent"], CASES["clustered"]], ids=["independent", "clustered"]
)
def test_the_seam_of_a_vector_is_an_error_like_any_other(model, settings):
    """After the last error of the vector the next one is as far as after any error: the numbers after the first
    repeat.
    """
    n, after = 64, 0
    for number in range(SEEDS):
        gaps = vector(model, settings, stream(2, model, number), n)
        walked = np.cumsum(np.concatenate([gaps, gaps[1:], gaps[1:]]))
        seam = walked[n - 1]
        after += bool(((walked > seam) & (walked <= seam + PACKET_BITS)).any())

    mean, inner = settings.get("mean_errors_per_burst", 1.0), settings.get("mean_gap_in_burst", 1.0)
    outer = mean / settings["ber"] - (mean - 1) * inner
    expected = 1 - (1 / mean * (1 - 1 / outer) ** PACKET_BITS + (1 - 1 / mean) * (1 - 1 / inner) ** PACKET_BITS)
    assert stats.binomtest(after, SEEDS, expected).pvalue > LEAST_CHANCE, (after, expected)


def test_a_channel_that_is_mostly_bad_begins_so():
    settings = {"p_good_bad": 1e-3, "p_bad_good": 1e-6, "ber_good": 0.0, "ber_bad": 0.5}

    assert all(vector("gilbert-elliott", settings, stream(3, number), 8)[0] < 10_000 for number in range(200))


PINNED = {
    "independent": "10e5cf64550cbd36",
    "clustered, the quietest of FY97": "e14c0daa04b0ea33",
    "clustered": "d658fcebda1487fe",
    "wide clusters": "d85644934b484b96",
    "gilbert-elliott": "26ee3f3ef812929d",
}


def digest(name):
    model, settings = CASES[name]
    return hashlib.sha256(vector(model, settings, "2a" * 32, 65_536).astype("<u8").tobytes()).hexdigest()[:16]


@pytest.mark.parametrize("name", CASES)
def test_whole_vectors_are_pinned(name):
    """They are part of every recorded result: another numpy, C library or processor must give the same."""
    assert digest(name) == PINNED[name]


def test_another_generator_is_not_taken_in_silence(monkeypatch):
    monkeypatch.setattr(vectors, "SAMPLE", (1, 2, 3))
    vectors._check_generator.cache_clear()

    with pytest.raises(vectors.CapabilityError, match="another stream of PCG64"):
        Draws("2a" * 32)
    monkeypatch.undo()
    vectors._check_generator.cache_clear()


def test_logarithms_are_those_of_the_c_library_within_two_units_in_the_last_place():
    x = np.concatenate([Draws("11" * 32).uniform(100_000), 2.0 ** -np.arange(1, 60), 1 - 2.0 ** -np.arange(1, 54)])
    expected = np.log(x)

    assert (np.abs(vectors.log(x) - expected) <= 2 * np.spacing(np.abs(expected))).all()
    for p in (1e-300, 1e-18, 1e-7, 1e-3, 0.25, 0.2500001, 0.5, 0.999999, 1 - 1e-16):
        assert vectors.log_of_miss(p) == pytest.approx(float(np.log1p(-p)), rel=4e-16)
