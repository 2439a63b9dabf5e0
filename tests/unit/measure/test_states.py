"""The file of TCP's states, which may be a stranger's."""

import random
import struct

import numpy as np
import pytest

from scpslab.core.errors import ResultError
from scpslab.lab.packets import STATE_COLUMNS, write_scps_states
from scpslab.measure.states import SHOWN, read, rows

NEAR, FAR = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])


def written(*states):
    """As the lab writes it; of each: t_ns, whether the far end's, cwnd, ssthresh, srtt in µs."""
    steps = np.diff([state[0] for state in states], prepend=0)
    lines = [
        struct.pack(
            "<q4s4sHHIIIIIII", step, *((FAR, NEAR, 80, 9) if is_far else (NEAR, FAR, 9, 80)), 1400, *its, 3, 2, 1
        )
        for step, (_, is_far, *its) in zip(steps.tolist(), states, strict=True)
    ]
    planes = b"".join(bytes(line[plane] for line in lines) for plane in range(48))
    return b"scpslab states 1\ncolumns %s\nstates %d\n" % (STATE_COLUMNS, len(lines)) + planes


def test_states_are_read_by_the_end_of_the_connection(tmp_path):
    file = tmp_path / "states.rec"
    file.write_bytes(written((-5, 0, 10, 2**31 - 1, 0), (10**10, 1, 3, 2, 500), (10**10 + 256, 0, 11, 7, 2**32 - 1)))

    assert list(rows(read(file))) == [
        ("-0.000000005", "10.0.0.1:9", "10.0.0.2:80", 1400, 14000, None, 0, 3, 2, 1, ""),
        ("10.000000256", "10.0.0.1:9", "10.0.0.2:80", 1400, 15400, 9800, 2**32 - 1, 3, 2, 1, ""),
        ("10.000000000", "10.0.0.2:80", "10.0.0.1:9", 1400, 4200, 2800, 500, 3, 2, 1, ""),
    ]
    assert len(SHOWN) == 11
    assert read(tmp_path / "none") == ()
    file.write_bytes(written())
    assert read(file) == ()


def test_states_of_scps_are_in_bytes_and_by_time(tmp_path):
    """Of several programs; a killed one's last row may be cut. Windows up to 4 GiB, and none."""
    file, row = tmp_path / "scps-states.rec", struct.Struct("<q4s4sHHIIII")
    sender = [(1000, 2**32 - 1, 2**32 - 1, 0), (3000, 2**32 - 2, 1, 700_000)]
    programs = [b"".join(row.pack(at, NEAR, FAR, 9, 80, 1400, *its) for at, *its in sender)]
    programs.append(row.pack(2000, FAR, NEAR, 80, 9, 1400, 2801, 0, 5) + row.pack(9, FAR, NEAR, 80, 9, 1, 2, 3, 4)[:-1])

    write_scps_states(file, programs, 500)

    assert list(rows(read(file))) == [
        ("0.000000500", "10.0.0.1:9", "10.0.0.2:80", 1400, None, None, 0, None, None, None, ""),
        ("0.000002500", "10.0.0.1:9", "10.0.0.2:80", 1400, 2**32 - 2, 1, 700_000, None, None, None, ""),
        ("0.000001500", "10.0.0.2:80", "10.0.0.1:9", 1400, 2801, 0, 5, None, None, None, ""),
    ]
    assert {told[-1] for told in rows(read(file, "g1"))} == {"g1"}
    write_scps_states(tmp_path / "none", [], 0)
    assert not (tmp_path / "none").exists()


def test_what_is_no_such_file_is_refused(tmp_path):
    """Cut, lengthened or changed in its first lines; changed bytes behind these are other states."""
    file, whole = tmp_path / "states.rec", written((1, 0, 10, 9, 8), (2, 1, 10, 9, 8))
    draw = random.Random(3)
    begins = whole.index(b"\nstates 2\n") + 10
    for spoilt in (whole[:-1], whole + b"\0", b"", whole.replace(b"states 2", b"states 9999999999"), whole[:begins]):
        file.write_bytes(spoilt)
        with pytest.raises(ResultError, match="expected the states of TCP"):
            read(file)
    for _ in range(200):
        changed = bytearray(whole)
        changed[draw.randrange(begins, len(whole))] = draw.randrange(256)
        file.write_bytes(changed)
        assert sum(len(one.t_ns) for one in read(file)) == 2
