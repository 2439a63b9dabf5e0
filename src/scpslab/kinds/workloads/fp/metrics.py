"""A file or record by SCPS-FP: its time as the client reports it and as the packets show it, what restarts cost, and
what became of every byte.
"""

from collections.abc import Iterable

from scpslab.analysis.metrics import base, data_flows
from scpslab.analysis.metrics.base import Family, JsonObject, Subject, Values, columns, count, items, number, waited_s
from scpslab.analysis.metrics.data_flows import DATA_FLOWS, EMPTY_OF_A_FILE, OF_A_FILE, FileConnection, measure_capture

from scpslab.kinds.workloads.fp.plan import Fp

TRANSFERS = ("get", "put", "resume", "raread", "raupdt")
WRONG = ("lost_bytes", "duplicated_bytes", "damaged_bytes")
WIRE = ("wire_data_bytes", "wire_ack_bytes")
COLUMNS = columns(
    f"{OF_A_FILE} restarts moved_bytes resumed_at_bytes integrity_ok payload_match {' '.join(WRONG)} filled_bytes "
    f"{' '.join(WIRE)}"
)


EMPTY = EMPTY_OF_A_FILE | {
    "transfer_s": "a client was killed, or told of no transfer",
    "resumed_at_bytes": "no transfer went on where another had stopped",
}


def measure(subject: Subject[Fp]) -> Values:
    """Values by column name from the clients' records and the packets at both hosts."""
    file = subject.line("file")
    arrived = count(file, "bytes")
    clients = [line for line in subject.lines if line.get("event") == "client"]
    values: Values = {
        **{name: count(file, name) for name in ("bytes", *WRONG)},
        "payload_match": file.get("sha256") == file.get("sent_sha256") if file else None,
        "rtos": count(subject.line("sender"), "rtos"),
        **_told(clients),
    }
    rates = subject.rates(arrived, values.get("transfer_s"), number(clients[0], "start_t_s") if clients else None)
    return values | rates | measure_capture(subject, arrived) | _wire(subject)


def _told(clients: list[JsonObject]) -> Values:
    """What the clients report. A killed one reports nothing of what it was doing."""
    reports = [(client, items(client, "reports", dict)) for client in clients]
    found = [
        (client, told[: index + 1])
        for client, told in reports
        for index, report in enumerate(told)
        if str(report["command"]).split()[0] in TRANSFERS
    ]
    if not found:
        return {}
    transfers = [told[-1] for _, told in found]
    its_client, until_its_end = found[-1]
    last, before_s = transfers[-1], _sum("seconds", until_its_end)
    continued = len(clients) - 1 if len(clients) > 1 else len(transfers) - 1
    markers = [marker for report in transfers for marker in items(report, "markers", int) if marker]
    return {
        "transfer_s": _sum("seconds", transfers) if len(clients) == 1 else None,
        "user_s": waited_s(clients),
        "client_total_s": (number(its_client, "start_t_s") or 0) + before_s - (number(clients[0], "start_t_s") or 0),
        "restarts": continued + int(_sum("restarts", transfers)),
        "moved_bytes": int(_sum("octets", transfers)),
        "resumed_at_bytes": markers[-1] if markers else None,
        "integrity_ok": last.get("integrity") == "ok",
        "filled_bytes": int(_sum("filled", transfers)),
    }


def _sum(key: str, reports: Iterable[JsonObject]) -> float:
    return sum(number(report, key) or 0.0 for report in reports)


def _wire(subject: Subject[Fp]) -> Values:
    """IP bytes each way at the sending host, of all connections of the workload."""
    workload = subject.workload
    view = subject.cell.view(workload.from_, behind_queue=True)
    if view is None:
        return base.unknown(WIRE, base.unrecorded(workload.from_))
    mine, is_sure = data_flows.own_connections(subject.cell, workload, view)
    control = next((one for one in mine if one.server_port == workload.port), None)
    if control is None or not is_sure:
        return base.unknown(WIRE, "no connections that are surely all of it were seen at the sending host")
    source = control.client_ip if workload.opener == workload.from_ else control.server_ip
    sent = [(one.ip_bytes, one.from_client == (one.client_ip == source)) for one in mine]
    ways = zip(WIRE, (True, False), strict=True)
    return {name: sum(int(size[is_its == way].sum()) for size, is_its in sent) for name, way in ways}


DATA_FLOWS.register("fp", FileConnection(Family(COLUMNS, measure, empty=EMPTY)))
