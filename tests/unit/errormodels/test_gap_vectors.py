"""Gap vectors against the closed forms of their models."""

from __future__ import annotations

import hashlib
import os
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from scpslab.core.errors import ScenarioError
from scpslab.plan.error_models import MODELS, Errors
from scpslab.scenario.errors import MODELS as KINDS
from scpslab.scenario.errors import ErrorModel
from scpslab.scenario.vectors import Draws, bit_map, gap_vector

from scpslab.kinds.errors.clustered.plan import Clustered
from scpslab.kinds.errors.independent.plan import Independent
from scpslab.kinds.errors.vector_file import scenario
from scpslab.kinds.errors.vector_file.plan import VectorFile
from scpslab.kinds.errors.vector_file.scenario import BLOCK_BYTES, KIND, gaps_of_bits

N = 400_000
BURST_TOLERANCE = 0.03


def vector(model: str, n: int = N, **settings):
    if model == "vector-file":
        path = Path(settings["file"])
        settings["sha256"] = hashlib.sha256(path.read_bytes() if path.exists() else b"").hexdigest()
    return gap_vector(errors(MODELS[model](**settings), model, n))


def errors(settings, model, n, seed="2a" * 32):
    common = {"action": "drop", "drop_packets": (), "drop_min_bytes": 0, "outages": ()}
    return Errors(model=model, settings=settings, seed=seed, vector_errors=n, **common)


def stored(path):
    return VectorFile(file=str(path), sha256=hashlib.sha256(path.read_bytes()).hexdigest())


def map_of(settings):
    return bit_map(errors(settings, "vector-file", 1), 1 << 20)


@pytest.mark.parametrize("ber", [1e-7, 1e-5, 1e-3, 0.5])
def test_independent_gaps_have_mean_one_over_ber(ber):
    """The mean of n geometric gaps lies within 5 standard errors of 1/BER."""
    gaps = vector("independent", ber=ber)
    assert abs(gaps.mean() * ber - 1) < 5 / np.sqrt(N)
    assert gaps.min() >= 1


@pytest.mark.parametrize("mean", [1.0, 3.0, 4.0, 6.0])
def test_clusters_keep_the_bit_error_rate_and_the_burst_length(mean):
    """Bursts hold the stated mean number of errors within 3 %, and the mean bit error rate is kept within 3 %."""
    gaps = vector("clustered", ber=1e-5, mean_errors_per_burst=mean, mean_gap_in_burst=3.0)
    bursts = (gaps > 1000).sum()  # inside a burst a gap of 1000 bits has probability (2/3)^1000
    assert abs(N / bursts / mean - 1) < BURST_TOLERANCE
    assert abs(gaps.mean() * 1e-5 - 1) < BURST_TOLERANCE


def test_gilbert_elliott_keeps_error_rate_and_burst_length():
    """Mean bit error rate is that of the states' shares; bad states last 1/p_bad_good bits: both within 3 %."""
    good_bad, bad_good, bad = 1e-6, 0.05, 1.0
    gaps = vector("gilbert-elliott", p_good_bad=good_bad, p_bad_good=bad_good, ber_good=0.0, ber_bad=bad)
    share_bad = good_bad / (good_bad + bad_good)
    # Every bit of a bad state is wrong, so a burst is as long as its state: 20 bits. Good states last a million bits,
    # so a gap above 10,000 ends a burst. 20,000 bursts: one standard error of their mean length is 0.7 %.
    bursts = (gaps > 10_000).sum()
    assert abs(gaps.mean() * share_bad * bad - 1) < BURST_TOLERANCE
    assert abs(N / bursts / (bad / bad_good) - 1) < BURST_TOLERANCE


def test_no_error_rate_means_no_vector():
    """A rate of 0 has no errors at all."""
    assert len(vector("independent", ber=0.0)) == 0
    assert len(gap_vector(None)) == 0


def test_the_same_seed_gives_the_same_vector():
    """Seeds decide; another seed gives another vector.

    The first gaps are pinned: they are part of every recorded result.
    """
    first = vector("independent", 5, ber=1e-5)
    assert (first == vector("independent", 5, ber=1e-5)).all()
    assert first.tolist() == PINNED


PINNED = [91417, 40153, 560106, 9486, 4117]


def test_vector_file_of_gaps(tmp_path):
    """One gap a line; after the last one the first error comes again."""
    file = tmp_path / "errors.txt"
    file.write_text("5\n10\n1\n")
    assert vector("vector-file", file=str(file)).tolist() == [5, 10, 1, 5]


def test_vector_file_of_bits_repeats_with_its_own_period():
    """Bits 0 and 9 of 16 are wrong, from the first turn on: distances 9 and, over the end, 7."""
    gaps = gaps_of_bits(bytes([0x80, 0x40]))
    assert gaps[1:].sum() == 16
    assert gaps.tolist() == [1, 9, 7]
    assert gaps_of_bits(bytes(2)).tolist() == []


def test_a_map_of_many_blocks_is_read_as_one():
    data = np.random.default_rng(1).integers(0, 256, BLOCK_BYTES + 5, dtype=np.uint8)
    positions = np.flatnonzero(np.unpackbits(data))
    assert (np.cumsum(gaps_of_bits(data.tobytes())[:-1]) - 1 == positions).all()


BAD = {
    "a word": (
        ".txt",
        b"7\nfive\n",
        (
            'bad.txt:2: found "five"; expected one gap in bits per line, a whole number from 1 to '
            "9223372036854775807. Correct"
        ),
    ),
    "zero": (".txt", b"0\n", 'bad.txt:1: found "0"'),
    "a negative gap": (".txt", b"1\n\n-5\n", 'bad.txt:3: found "-5"'),
    "a part of a bit": (".txt", b"1.5", 'bad.txt:1: found "1.5"'),
    "a power": (".txt", b"1e3", 'found "1e3"'),
    "an underline": (".txt", b"1_000\n", 'found "1_000"'),
    "not a number": (".txt", b"nan\n", 'found "nan"'),
    "more than 64 bits": (".txt", b"1" * 23, 'found "11111111111111111111111"'),
    "bytes": (".txt", b"1\n\xff\0\n", r'bad.txt:2: found "\xff\x00"'),
    "a byte order mark": (".txt", b"\xef\xbb\xbf5\n", r'bad.txt:1: found "\xef\xbb\xbf5"'),
    "two in a line": (".txt", b"5" + b" " * 200 + b"6\n", 'bad.txt:1: found "5"; expected one gap in bits per line'),
    "no gap": (".txt", b"\n \n", "bad.txt: found no gap; expected one gap in bits per line. Fill the file"),
    "no byte": (".bits", b"", "bad.bits: found an empty file; expected an error vector. Fill it"),
    "too many errors": (".bits", b"\xff" * 200, "bad.bits: found 1600 wrong bits of 1600; expected at most 1000"),
    "too many gaps": (".txt", b"1\n" * 1001, "bad.txt: found more than 1000 gaps; expected"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_vector_files_are_named_with_their_line_before_and_in_a_run(tmp_path, name, monkeypatch):
    monkeypatch.setattr(scenario, "MOST_ERRORS", 1000)
    suffix, content, found = BAD[name]
    file = tmp_path / f"bad{suffix}"
    file.write_bytes(content)
    ((key, said),) = KIND(file=file.name).problems(tmp_path)
    assert (key, found in said) == (("file",), True), said
    with pytest.raises(ScenarioError) as caught:
        vector("vector-file", file=str(file))
    assert str(caught.value) == f"{tmp_path}/{said}"


def test_what_is_no_file_is_called_what_it_is(tmp_path):
    (tmp_path / "folder.txt").mkdir()
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    (tmp_path / "lost.txt").symlink_to("none")
    os.mkfifo(tmp_path / "pipe.txt")
    words = {
        "folder": "a folder",
        "loop": "a link that leads in a circle",
        "lost": "a link to a file that is not there",
        "pipe": "no ordinary file",
    }
    for name, found in words.items():
        ((_, said),) = KIND(file=f"{name}.txt").problems(tmp_path)
        assert said == f'found "{name}.txt", {found}; expected an error vector. Correct the name.'


def test_a_missing_vector_file_is_named(tmp_path):
    """The message names the file."""
    with pytest.raises(ScenarioError, match=r"none\.txt"):
        vector("vector-file", file=str(tmp_path / "none.txt"))


def test_gaps_and_their_bit_map_are_the_same_vector(tmp_path):
    text, bits = tmp_path / "some.txt", tmp_path / "some.bits"
    text.write_text("3\n1\n20\n")
    bits.write_bytes(map_of(stored(text)))
    assert bits.read_bytes() == bytes([0b00110000, 0, 0b00000001])
    assert map_of(stored(bits)) == bits.read_bytes()
    assert list(gaps_of_bits(bits.read_bytes())) == [3, 1, 20, 3]


@pytest.mark.parametrize("read", [lambda settings: gap_vector(errors(settings, "vector-file", 1)), map_of])
def test_a_vector_that_is_another_one_now_or_no_file_is_refused(tmp_path, read):
    path = tmp_path / "v.txt"
    path.write_text("3\n5\n")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    os.mkfifo(tmp_path / "pipe")

    read(VectorFile(file=str(path), sha256=digest))
    with pytest.raises(ScenarioError, match="another content"):
        read(VectorFile(file=str(path), sha256="0" * 64))
    for name in ("/dev/zero", str(tmp_path / "pipe"), str(tmp_path), str(tmp_path / "none")):
        with pytest.raises(ScenarioError, match="found (no file|no ordinary file|a folder)"):
            read(VectorFile(file=name, sha256=digest))


def test_gaps_that_no_memory_holds_as_a_map_are_refused(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text(f"{2**62}\n" * 8)

    with pytest.raises(ScenarioError, match="add up to"):
        map_of(stored(path))


class Far(ErrorModel):
    """Two errors early, and others further away than any map is long, twice over what 64 bits hold."""

    @staticmethod
    def gaps(settings, n, draws):
        return np.array([3, 1, *[2**62] * 8], dtype=np.uint64)


def test_a_model_that_the_channel_does_not_know_is_a_bit_map_of_its_gaps():
    assert Far.bit_map(None, 10, Draws("5c" * 32), 24) == bytes([0b00110000, 0, 0])
    assert Far.bit_map(None, 10, Draws("5c" * 32), 3) == bytes([0b00100000])


def test_a_serial_link_is_given_no_map_of_what_its_channel_draws():
    drawn = {name: kind for name, kind in MODELS.items() if kind.CHANNEL is not None}

    assert set(MODELS) - set(drawn) == {"vector-file", "packet-loss"}
    assert bit_map(errors(Independent(ber=1e-5), "independent", 10), 1 << 20) is None
    assert {name: set(kind.CHANNEL) for name, kind in drawn.items()} == {
        name: {field.name for field in fields(kind)} for name, kind in drawn.items()
    }


def test_every_model_plans_the_settings_that_plans_have():
    assert {name: kind.planned for name, kind in KINDS.items()} == MODELS


@pytest.mark.parametrize("ber", [5e-324, 1e-300, 1e-25])
@pytest.mark.parametrize("model", ["independent", "clustered"])
@pytest.mark.filterwarnings("error")
def test_the_smallest_rates_give_gaps_that_are_never_reached(model, ber):
    settings = (
        Independent(ber=ber)
        if model == "independent"
        else Clustered(ber=ber, mean_errors_per_burst=1.0, mean_gap_in_burst=3.0)
    )
    gaps = gap_vector(errors(settings, model, 1000, seed="5c" * 32))

    assert gaps.min() > 10**15
    assert gaps.max() <= 2**62
