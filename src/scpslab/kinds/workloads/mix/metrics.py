"""A mix of files: its completion, as one workload."""

from __future__ import annotations

from scpslab.analysis.metrics.base import Family, Subject, Values, columns, number, unknown
from scpslab.analysis.metrics.data_flows import DATA_FLOWS, OwnConnection

from scpslab.kinds.workloads.mix.plan import File

TIMES = ("mix_s", "file_mean_s", "file_worst_s", "goodput_bps")
COLUMNS = columns(
    {
        "files": None,
        "files_done": None,
        "mix_s": 9,
        "file_mean_s": 9,
        "file_worst_s": 9,
        "bytes": None,
        "goodput_bps": 3,
    }
)


def measure(subject: Subject[File]) -> Values:
    """Values by column name from the senders' records of all its files."""
    mix = subject.workload.mix
    files = [one for one in subject.cell.plan.cell.workloads if one.part_of == mix]
    senders = [Subject(subject.cell, one).line("sender") for one in files]
    done = [line for line in senders if line.get("status") == "completed"]
    spans = [(number(line, "connect_t_s") or 0.0, number(line, "close_t_s") or 0.0) for line in done]
    values: Values = {"files": len(files), "files_done": len(done)}
    if len(done) < len(files):
        why = f"{len(files) - len(done)} of {len(files)} files of {mix} were not complete when the cell ended"
        return values | unknown((*TIMES, "bytes"), why)
    mix_s = max(end_s for _, end_s in spans) - min(start_s for start_s, _ in spans)
    took_s = [end_s - start_s for start_s, end_s in spans]
    size_bytes = sum(one.bytes_ for one in files if isinstance(one, File))
    return values | {
        "mix_s": mix_s,
        "file_mean_s": sum(took_s) / len(took_s),
        "file_worst_s": max(took_s),
        "bytes": size_bytes,
        "goodput_bps": size_bytes * 8 / mix_s if mix_s else None,
    }


DATA_FLOWS.register("mix", OwnConnection(Family(COLUMNS, measure)))
