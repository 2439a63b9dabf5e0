"""A mix of files runs beside other workloads, over each stack; what is cut off says so."""

import pytest

MIX = "  - {kind: mix, name: web, from: h2, to: h1, per_second: 4, number: 6, sizes: {5 kB: 3, 20 kB: 1}, required: REQUIRED}\n"
TEXT = (
    f"workloads:\n  - {{kind: bulk, name: transfer, from: h1, to: h2, size: 50 kB, start: {{random: 0 s..1 s}}}}\n{MIX}"
)
HOSTS = "hosts: {h1: {stack: scps}, h2: {stack: scps}}\n"


@pytest.mark.parametrize("hosts", ["", HOSTS])
def test_files_of_a_mix_arrive_and_their_packets_are_theirs(run, hosts):
    ran = run(TEXT.replace("REQUIRED", "true") + hosts)
    row, cell = ran.row, ran.cell.completed
    names = [one.name for one in cell.plan.cell.workloads]
    sent = {flow.owner for places in cell.record.by_place.values() for flow in places.flows}
    assert set(names) <= sent
    assert (row["files"], row["files_done"]) == ("6", "6")
    assert int(row["web_bytes"]) == sum(one.bytes_ for one in cell.plan.cell.workloads[1:])
    assert 1.0 < float(row["file_mean_s"]) <= float(row["file_worst_s"]) < float(row["mix_s"])


def test_a_mix_that_the_end_cuts_off_has_no_time(run):
    row = run(TEXT.replace("REQUIRED", "false"), "workloads.web.per_second=0.5").row
    assert row["mix_s"] == row["web_bytes"] == ""
    done = int(row["files_done"])
    assert done < 6
    assert f"web_goodput_bps: {6 - done} of 6 files of web were not complete when the cell ended" in row["unmeasured"]
