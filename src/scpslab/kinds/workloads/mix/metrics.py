"""A mix of files: its completion, as one workload."""

from typing import cast

import numpy as np

from scpslab.analysis.metrics.base import Family, Subject, Values, columns, number, unknown
from scpslab.analysis.metrics.data_flows import DATA_FLOWS, OwnConnection

from scpslab.kinds.workloads.mix.plan import File

TIMES = ("mix_s", "file_mean_s", "file_worst_s")
COLUMNS = columns("files files_done mix_s:9 file_mean_s:9 file_worst_s:9 bytes goodput_bps:3")


def measure(subject: Subject[File]) -> Values:
    """Values by column name from the senders' records of all its files."""
    mix = subject.workload.mix
    files = [one for one in subject.cell.plan.cell.workloads if one.part_of == mix]
    senders = [Subject(subject.cell, one).line("sender") for one in files]
    done = [line for line in senders if line.get("status") == "completed"]
    values: Values = {"files": len(files), "files_done": len(done)}
    if len(done) < len(files):
        why = f"{len(files) - len(done)} of {len(files)} files of {mix} were not complete when the cell ended"
        return values | unknown((*TIMES, "bytes", "goodput_bps"), why)
    starts_s, ends_s = (np.array([number(line, key) for line in done]) for key in ("connect_t_s", "close_t_s"))
    mix_s, size_bytes = float(ends_s.max() - starts_s.min()), sum(cast("File", one).bytes_ for one in files)
    times = (mix_s, float((ends_s - starts_s).mean()), float((ends_s - starts_s).max()))
    rate = {"bytes": size_bytes, "goodput_bps": size_bytes * 8 / mix_s}
    return values | dict(zip(TIMES, times, strict=True)) | rate


DATA_FLOWS.register("mix", OwnConnection(Family(COLUMNS, measure)))
