"""A file by FTP: its time as the client reports it, which is what the NMSU papers plot, and as the packets show it."""

from scpslab.analysis.metrics.base import Family, Subject, Unknown, Values, columns, count, elapsed, number, waited_s
from scpslab.analysis.metrics.data_flows import DATA_FLOWS, EMPTY_OF_A_FILE, OF_A_FILE, FileConnection, measure_capture

from scpslab.kinds.workloads.ftp.plan import Ftp

COLUMNS = columns(f"{OF_A_FILE} payload_match")


def measure(subject: Subject[Ftp]) -> Values:
    """Values by column name from the client's record and the packets at both hosts."""
    client, file = subject.line("client"), subject.line("file")
    arrived, total_s = count(file, "bytes"), number(client, "total_s")
    before_s = number(client, "before_transfer_s")
    transfer_s = elapsed(before_s, total_s)
    start_s = elapsed(None if before_s is None else -before_s, number(client, "start_t_s"))
    values: Values = {
        "bytes": arrived,
        "client_total_s": total_s,
        "payload_match": file.get("sha256") == file.get("sent_sha256") if file else None,
        "transfer_s": transfer_s,
        "user_s": waited_s([client]),
    }
    # The kernel's connection ends at the host's own gateway.
    is_own = not subject.cell.plan.cell.gateway_of(subject.workload.from_)
    values["rtos"] = (
        count(subject.line("sender"), "rtos") if is_own else Unknown("the host's gateway sends, and does not say")
    )
    return values | subject.rates(arrived, transfer_s, start_s) | measure_capture(subject, arrived)


DATA_FLOWS.register("ftp", FileConnection(Family(COLUMNS, measure, empty=EMPTY_OF_A_FILE)))
