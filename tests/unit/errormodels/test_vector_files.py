"""Stored error vectors: their gaps and bit maps, and what is said of files that are none."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from scpslab.core.errors import ScenarioError
from scpslab.plan.error_models import Errors
from scpslab.scenario import errors as vectors
from tests import golden
from tests.cases import refusal

from scpslab.kinds.errors.vector_file import scenario
from scpslab.kinds.errors.vector_file.plan import VectorFile
from scpslab.kinds.errors.vector_file.scenario import BLOCK_BYTES, VectorFileModel, gaps_of_bits


def errors(path: Path, sha256: str | None = None) -> Errors:
    """A plan's errors with the file as it is, or another digest."""
    settings = VectorFile(file=str(path), sha256=sha256 or hashlib.sha256(path.read_bytes()).hexdigest())
    common = {"action": "drop", "drop_packets": (), "drop_min_bytes": 0, "outages": ()}
    return Errors(model="vector-file", settings=settings, seed="2a" * 32, vector_errors=1, **common)


def gaps_of(stored):
    return vectors.drawn(stored)[".u64"]


def map_of(stored: Errors) -> bytes | None:
    return vectors.bit_map(stored, 1 << 20)


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_bits_repeat_with_their_own_period():
    """Bits 0 and 9 of 16 are wrong, from the first turn on: distances 9 and, over the end, 7."""
    assert gaps_of_bits(bytes([0x80, 0x40])).tolist() == [1, 9, 7]
    assert gaps_of_bits(bytes(2)).tolist() == []


def test_a_map_of_many_blocks_is_read_as_one():
    data = np.random.default_rng(1).integers(0, 256, BLOCK_BYTES + 5, dtype=np.uint8)
    positions = np.flatnonzero(np.unpackbits(data))
    assert (np.cumsum(gaps_of_bits(data.tobytes())[:-1]) - 1 == positions).all()


def test_gaps_and_their_bit_map_are_the_same_vector(tmp_path):
    """One gap a line; after the last one the first error comes again."""
    text = errors(written(tmp_path / "some.txt", b"3\n1\n20\n"))
    assert map_of(text) == bytes([0b00110000, 0, 0b00000001])
    bits = errors(written(tmp_path / "some.bits", map_of(text)))
    assert map_of(bits) == map_of(text)
    assert gaps_of(text).tolist() == gaps_of(bits).tolist() == [3, 1, 20, 3]


WORDS = ("7\nfive\n", "0\n", "1\n\n-5\n", "1.5", "1e3", "1_000\n", "nan\n", "1" * 23, "5" + " " * 200 + "6\n", "\n \n")
BAD = {".txt": (*WORDS, "1\n\xff\0\n", "\xef\xbb\xbf5\n", "1\n" * 1001), ".bits": ("", "\xff" * 200)}


@pytest.mark.parametrize(("suffix", "content"), [(suffix, content) for suffix, all_ in BAD.items() for content in all_])
def test_bad_vector_files_are_named_with_their_line_before_and_in_a_run(tmp_path, suffix, content, monkeypatch):
    monkeypatch.setattr(scenario, "MOST_ERRORS", 1000)
    file = written(tmp_path / f"bad{suffix}", content.encode("latin-1"))
    problem = VectorFileModel(file=file.name).misfit(tmp_path)
    assert problem is not None
    assert problem.at == ("file",)
    golden.Case("vector files", f"{suffix} {content[:20]!r}").hold(problem)
    assert refusal(gaps_of, errors(file)) == f"{tmp_path}/{problem}"


def test_what_is_no_file_is_called_what_it_is(tmp_path):
    (tmp_path / "folder.txt").mkdir()
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    (tmp_path / "lost.txt").symlink_to("none")
    os.mkfifo(tmp_path / "pipe.txt")
    for name in ("folder", "loop", "lost", "pipe"):
        problem = VectorFileModel(file=f"{name}.txt").misfit(tmp_path)
        golden.Case("vector files", name).hold(problem)


@pytest.mark.parametrize("read", [gaps_of, map_of])
def test_a_vector_that_is_another_one_now_or_no_file_is_refused(tmp_path, read):
    path = written(tmp_path / "v.txt", b"3\n5\n")
    os.mkfifo(tmp_path / "pipe")

    read(errors(path))
    with pytest.raises(ScenarioError, match="another content"):
        read(errors(path, "0" * 64))
    for name in (Path("/dev/zero"), tmp_path / "pipe", tmp_path, tmp_path / "none"):
        with pytest.raises(ScenarioError, match=f"^{name}: found (no file|no ordinary file|a folder)"):
            read(errors(name, "0" * 64))


def test_gaps_that_no_memory_holds_as_a_map_are_refused(tmp_path):
    with pytest.raises(ScenarioError, match="add up to"):
        map_of(errors(written(tmp_path / "v.txt", f"{2**62}\n".encode() * 8)))
