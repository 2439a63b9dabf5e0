"""Gap vectors and lost packets: as often as closed forms say, from the first bit on, and the same for ever."""

import hashlib
from dataclasses import fields

import numpy as np
import pytest
from scipy import stats

from scpslab.audit import _bad_until, _errors_until
from scpslab.core.errors import CapabilityError
from scpslab.core.seeds import stream
from scpslab.plan.error_models import MODELS, Errors
from scpslab.scenario import draws
from scpslab.scenario.draws import Draws
from scpslab.scenario.errors import ErrorModel, bit_map, drawn, misfit

N, SEED = 400_000, "2a" * 32
BURST_TOLERANCE = 0.03
SEEDS, PACKETS, PACKET_BITS = 10_000, 100, 12_000
# Numbers in the vectors of most tests: few, but more than the errors in so many packets.
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
    "gilbert-elliott": (
        "gilbert-elliott",
        {"good_to_bad_per_bit": 2e-6, "bad_to_good_per_bit": 2e-5, "ber_good": 1e-6, "ber_bad": 2e-4},
    ),
}
every_case = pytest.mark.parametrize(("model", "settings"), CASES.values(), ids=CASES)


def errors(model, settings, seed=SEED, n=FEW):
    common = {"action": "drop", "drop_packets": (), "drop_min_bytes": 0, "outages": ()}
    return Errors(model=model, settings=MODELS[model](**settings), seed=seed, vector_errors=n, **common)


def vector(model, settings, seed=SEED, n=FEW, ending=".u64"):
    return drawn(errors(model, settings, seed, n)).get(ending, np.zeros(0)).astype(np.int64)


def lost_packets(of):
    return drawn(of).get(".drops", np.zeros(0, np.uint64))


def walked(gaps, bits):
    """The places of a vector's errors among so many bits."""
    turns = int(bits // max(gaps[1:].sum(), 1)) + 1 if len(gaps) else 0
    places = np.cumsum(np.concatenate([gaps, *[gaps[1:]] * turns])) - 1
    return places[places < bits]


def wrong(model, settings, bits, seed=SEED, n=FEW):
    """The places of errors among the first bits of a channel, of one state or of two."""
    found = {ending: numbers.astype(np.int64) for ending, numbers in drawn(errors(model, settings, seed, n)).items()}
    if ".spells" not in found:
        return walked(found.get(".u64", np.zeros(0, np.int64)), bits)
    spells = np.tile(found[".spells"], int(bits // found[".spells"].sum()) + 1)
    ends, places = np.cumsum(spells), []
    for state, ending in enumerate((".u64", ".bad.u64")):
        own = np.concatenate(([0], np.cumsum(spells[state::2])))
        at = walked(found.get(ending, np.zeros(0, np.int64)), min(own[-1], bits))
        spell = np.searchsorted(own, at, side="right") - 1
        places.append((ends - spells)[state::2][spell] + at - own[spell])
    merged = np.sort(np.concatenate(places))
    return merged[merged < bits]


@pytest.mark.parametrize("ber", [1e-7, 1e-5, 1e-3, 0.5])
def test_independent_gaps_have_mean_one_over_ber(ber):
    """The mean of n geometric gaps lies within 5 standard errors of 1/BER."""
    gaps = vector("independent", {"ber": ber}, n=N)
    assert abs(gaps.mean() * ber - 1) < 5 / np.sqrt(N)
    assert gaps.min() >= 1


@pytest.mark.parametrize("mean", [1.0, 3.0, 4.0, 6.0])
def test_clusters_keep_the_bit_error_rate_and_the_burst_length(mean):
    """Bursts hold the stated mean number of errors within 3 %, and the mean bit error rate is kept within 3 %."""
    gaps = vector("clustered", {"ber": 1e-5, "mean_errors_per_burst": mean, "mean_gap_in_burst": 3.0}, n=N)
    bursts = (gaps > 1000).sum()  # inside a burst a gap of 1000 bits has probability (2/3)^1000
    assert abs(N / bursts / mean - 1) < BURST_TOLERANCE
    assert abs(gaps.mean() * 1e-5 - 1) < BURST_TOLERANCE


def test_gilbert_elliott_keeps_error_rate_and_burst_length():
    """Mean bit error rate is that of the states' shares; bad states last 1/bad_to_good_per_bit bits: both within 3 %."""
    good_bad, bad_good, bad = 1e-6, 0.05, 1.0
    settings = {"good_to_bad_per_bit": good_bad, "bad_to_good_per_bit": bad_good, "ber_good": 0.0, "ber_bad": bad}
    gaps = np.diff(wrong("gilbert-elliott", settings, 2 * 10**9, n=65_536))
    share_bad = good_bad / (good_bad + bad_good)
    # Every bit of a bad state is wrong, so a burst is as long as its state: 20 bits. Good states last a million bits,
    # so a gap above 10,000 ends a burst. 2,000 bursts: one standard error of their mean length is 2 %.
    bursts = (gaps > 10_000).sum()
    assert abs(gaps.mean() * share_bad * bad - 1) < BURST_TOLERANCE
    assert abs(len(gaps) / bursts / (bad / bad_good) - 1) < BURST_TOLERANCE


def test_the_rarest_errors_come_never_and_not_as_an_overflow():
    rarest = {"good_to_bad_per_bit": 1e-20, "bad_to_good_per_bit": 1e-3, "ber_good": 0.0, "ber_bad": 0.01}
    assert vector("gilbert-elliott", rarest, n=100, ending=".spells").max() == 2**62


# Bad spells of a few bits to some of a million, with errors at every second bit or hardly any: the packets lost of a
# hundred thousand of 1,500 B.
SPELLS = {
    "of bits": (0.3, 0.1, 1e-7, 1e-6),
    "of a packet": (1e-5, 1e-4, 1e-7, 1e-4),
    "of many errors": (1e-7, 1e-6, 1e-7, 0.5),
    "of a hundred thousand errors": (1e-8, 1e-6, 1e-9, 0.1),
    "with errors in the good state only": (1e-6, 1e-6, 1e-3, 0.0),
}


@pytest.mark.parametrize("spells", SPELLS.values(), ids=SPELLS)
@pytest.mark.parametrize("clock", [None, "time"])
def test_a_channel_of_two_states_loses_as_many_packets_as_its_closed_form_says(spells, clock):
    """However long its spells are, and at no more cost; vectors of the law of 0.4.0, 65,536 errors, lost 98, 73, 99.7
    or 35 % where 9.6 % are right.
    """
    names = ("good_to_bad_per_bit", "bad_to_good_per_bit", "ber_good", "ber_bad")
    settings = dict(zip(names, spells, strict=True))
    of = errors("gilbert-elliott", settings | {"clock": clock}, n=65_536)
    expected = of.settings.hit(PACKET_BITS)
    found = drawn(of)

    assert max(map(len, found.values())) == 65_536
    assert misfit(of, found, PACKET_BITS) is None
    # Packets all over the spells, each with the bits behind those of the one before it in either state's vector.
    gaps, bad_gaps, lengths = (
        found.get(ending, np.zeros(0)).astype(np.int64) for ending in (".u64", ".bad.u64", ".spells")
    )
    width = 1 if clock else PACKET_BITS
    starts = np.arange(200_000) * max(width, int(lengths.sum(dtype=float)) // 200_000)
    bad = (_bad_until(lengths, starts + width) - _bad_until(lengths, starts)) * PACKET_BITS // width
    errors_met = np.diff(_errors_until(gaps, np.cumsum(PACKET_BITS - bad)), prepend=0)
    errors_met += np.diff(_errors_until(bad_gaps, np.cumsum(bad)), prepend=0)
    assert (errors_met > 0).mean() == pytest.approx(expected, rel=0.05)
    if clock is None:
        assert expected == pytest.approx(1 - clean("gilbert-elliott", settings, PACKET_BITS), rel=1e-6)


@pytest.mark.parametrize("by", [0.8, 1.25])
def test_a_vector_of_other_settings_is_a_misfit(by):
    for model, settings in CASES.values():
        of = errors(model, settings, n=65_536)
        scaled = {name: value * by if name.startswith("ber") else value for name, value in settings.items()}
        assert misfit(of, drawn(of), PACKET_BITS) is None
        assert misfit(of, drawn(errors(model, scaled, n=65_536)), PACKET_BITS) is not None
    of = errors("packet", {"loss": 0.01}, n=65_536)
    assert misfit(of, drawn(of), PACKET_BITS) is None
    assert misfit(of, drawn(errors("packet", {"loss": 0.01 * by}, n=65_536)), PACKET_BITS) is not None


def test_a_vector_that_is_not_long_enough_for_its_model_is_a_misfit():
    """Bursts of a million errors: 65,536 are a part of one."""
    settings = {"ber": 1e-5, "mean_errors_per_burst": 1e6, "mean_gap_in_burst": 3.0}
    found, expected = misfit(of := errors("clustered", settings, n=65_536), drawn(of), PACKET_BITS)

    assert found == "65536 draws of the model clustered, by which 100 % of packets of 1500 B are lost"
    assert expected == "0.00301 %, give or take a tenth of it"


def test_no_error_rate_means_no_vector():
    assert drawn(errors("independent", {"ber": 0.0})) == drawn(errors("packet", {"loss": 0.0})) == {}
    no_errors = {"good_to_bad_per_bit": 0.1, "bad_to_good_per_bit": 0.1, "ber_good": 0.0, "ber_bad": 0.0}
    assert drawn(errors("gilbert-elliott", no_errors)) == {}


@pytest.mark.parametrize("ber", [5e-324, 1e-300, 1e-25])
@pytest.mark.parametrize("model", ["independent", "clustered"])
@pytest.mark.filterwarnings("error")
def test_the_smallest_rates_give_gaps_that_are_never_reached(model, ber):
    further = {"mean_errors_per_burst": 1.0, "mean_gap_in_burst": 3.0} if model == "clustered" else {}
    gaps = vector(model, {"ber": ber} | further, "5c" * 32, 1000)

    assert gaps.min() > 10**15
    assert gaps.max() <= 2**62


def test_the_smallest_loss_gives_packets_that_are_never_reached():
    rare = lost_packets(errors("packet", {"loss": 1e-300}, n=1 << 16))
    assert (np.diff(rare) == 1 << 40).all()


class Far(ErrorModel):
    """Two errors early, and others further away than any map is long, twice over what 64 bits hold."""

    @staticmethod
    def gaps(settings, n, draws):
        return np.array([3, 1, *[2**62] * 8], dtype=np.uint64)


def test_a_model_that_the_channel_does_not_know_is_a_bit_map_of_its_gaps():
    assert Far.bit_map(None, 10, Draws("5c" * 32), 24) == bytes([0b00110000, 0, 0])
    assert Far.bit_map(None, 10, Draws("5c" * 32), 3) == bytes([0b00100000])


def test_a_serial_link_is_given_no_map_of_what_its_channel_draws():
    channels = {name: kind for name, kind in MODELS.items() if kind.CHANNEL is not None}

    assert set(MODELS) - set(channels) == {"vector-file", "packet"}
    assert bit_map(errors("independent", {"ber": 1e-5}), 1 << 20) is None
    assert {name: set(kind.CHANNEL) for name, kind in channels.items()} == {
        name: {field.name for field in fields(kind)} - {"clock"} for name, kind in channels.items()
    }


def clean(model, settings, bits):
    """The chance that a run of bits at any place has no error."""
    if model == "independent":
        return (1 - settings["ber"]) ** bits
    if model == "clustered":
        mean, inner = settings["mean_errors_per_burst"], settings["mean_gap_in_burst"]
        outer = mean / settings["ber"] - (mean - 1) * inner
        share = outer / (outer + (mean - 1) * inner)
        return share * (1 - 1 / outer) ** bits + (1 - share) * (1 - 1 / inner) ** bits
    leave_good, leave_bad = settings["good_to_bad_per_bit"], settings["bad_to_good_per_bit"]
    stay = np.array([[1 - leave_good, leave_good], [leave_bad, 1 - leave_bad]])
    right = np.diag([1 - settings["ber_good"], 1 - settings["ber_bad"]])
    state = np.array([leave_bad, leave_good]) / (leave_good + leave_bad)
    return float(state @ np.linalg.matrix_power(right @ stay, bits) @ np.ones(2))


@pytest.mark.slow
@every_case
def test_every_packet_from_the_first_on_is_hit_as_often_as_any(model, settings):
    hits, kilobit = np.zeros(PACKETS, dtype=int), 0
    for number in range(SEEDS):
        positions = wrong(model, settings, PACKETS * PACKET_BITS, stream(1, model, number))
        hits[np.unique(positions // PACKET_BITS)] += 1
        kilobit += bool(len(positions)) and positions[0] < 1000

    per_packet, per_kilobit = 1 - clean(model, settings, PACKET_BITS), 1 - clean(model, settings, 1000)
    chances = [stats.binomtest(int(count), SEEDS, per_packet).pvalue for count in hits]
    assert min(chances) > LEAST_CHANCE, (hits, SEEDS * per_packet)
    assert stats.binomtest(int(kilobit), SEEDS, per_kilobit).pvalue > LEAST_CHANCE


@pytest.mark.slow
@pytest.mark.parametrize("name", ["independent", "clustered"])
def test_the_seam_of_a_vector_is_an_error_like_any_other(name):
    """After the last error of the vector the next one is as far as after any error: the numbers after the first
    repeat.
    """
    model, settings = CASES[name]
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
    settings = {"good_to_bad_per_bit": 1e-3, "bad_to_good_per_bit": 1e-6, "ber_good": 0.0, "ber_bad": 0.5}

    assert all(len(wrong("gilbert-elliott", settings, 10_000, stream(3, number), 8)) for number in range(200))


@pytest.mark.parametrize("loss", [0.001, 0.01, 0.3, 1.0])
def test_every_packet_is_lost_as_often_as_any(loss):
    seeds = 4_000
    lost = np.zeros(PACKETS, dtype=int)
    counts = []
    for number in range(seeds):
        packets = lost_packets(errors("packet", {"loss": loss}, stream(1, "packet", number)))
        assert packets[0] >= 1
        assert (np.diff(packets.astype(np.int64)) > 0).all()
        packets = packets[packets <= PACKETS].astype(int)
        lost[packets - 1] += 1
        counts.append(len(packets))

    assert min(stats.binomtest(int(count), seeds, loss).pvalue for count in lost) > 1e-6
    assert stats.binomtest(sum(counts), seeds * PACKETS, loss).pvalue > 1e-3
    # Independent packets: the counts of a hundred have the spread of a binomial law.
    if loss < 1:
        assert np.var(counts) == pytest.approx(PACKETS * loss * (1 - loss), rel=0.15)


PINNED = {
    "independent": "10e5cf64550cbd36",
    "clustered, the quietest of FY97": "e14c0daa04b0ea33",
    "clustered": "d658fcebda1487fe",
    "wide clusters": "d85644934b484b96",
    "gilbert-elliott": "830660a1e0ecb5e5",
    "packet": "e47b9d09be5bac82",
}


def test_whole_vectors_are_pinned():
    """They are part of every recorded result: another numpy, C library or processor must give the same."""
    cases = CASES | {"packet": ("packet", {"loss": 0.01})}
    vectors = {name: drawn(errors(*case, n=65_536)).values() for name, case in cases.items()}

    assert {
        name: hashlib.sha256(b"".join(one.astype("<u8").tobytes() for one in numbers)).hexdigest()[:16]
        for name, numbers in vectors.items()
    } == PINNED


def test_another_generator_is_not_taken_in_silence(monkeypatch):
    monkeypatch.setattr(draws, "SAMPLE", (1, 2, 3))
    draws._check_generator.cache_clear()

    with pytest.raises(CapabilityError, match="another stream of PCG64"):
        Draws(SEED)
    monkeypatch.undo()
    draws._check_generator.cache_clear()


def test_logarithms_are_those_of_the_c_library_within_two_units_in_the_last_place():
    x = np.concatenate([Draws("11" * 32).uniform(100_000), 2.0 ** -np.arange(1, 60), 1 - 2.0 ** -np.arange(1, 54)])
    expected = np.log(x)

    assert (np.abs(draws.log(x) - expected) <= 2 * np.spacing(np.abs(expected))).all()
    for p in (1e-300, 1e-18, 1e-7, 1e-3, 0.25, 0.2500001, 0.5, 0.999999, 1 - 1e-16):
        assert draws.log_of_miss(p) == pytest.approx(float(np.log1p(-p)), rel=4e-16)
