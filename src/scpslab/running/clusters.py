"""The Dask cluster that runs a run's cells: a scheduler's address, or workers of this machine that the run starts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from scpslab.core.errors import LabError, UsageError

LOCAL = "local"
ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss)://)?[A-Za-z0-9.\-\[\]:_]+:[0-9]{1,5}", re.ASCII)
ENCRYPTED = ("tls://", "wss://")
CERTIFICATES = "distributed.comm.tls.ca-file, and cert and key of client, scheduler and worker"
END_S = 10


def check(cluster: str) -> str:
    """The cluster that a person names: `local`, or the address of a scheduler.

    Raises:
        UsageError: it is neither, or its connections are open to everybody.
    """
    if cluster != LOCAL and not ADDRESS.fullmatch(cluster):
        raise UsageError(
            f'--cluster: found "{cluster[:80]}"; expected {LOCAL}, or an address such as tls://head:8786. Correct it.'
        )
    if cluster != LOCAL and not cluster.startswith(ENCRYPTED):
        raise UsageError(
            f"--cluster: found {cluster} without TLS, which lets everybody who reaches the scheduler run programs "
            "as you; expected tls://. "
            "Start scheduler and workers with certificates (docs/scale.md#certificates)."
        )
    return cluster


@contextmanager
def opened(cluster: str) -> Iterator[tuple[str, Any]]:
    """A scheduler's address, and what both ends prove who they are with (distributed.Security).

    Workers that this starts end with it.

    Raises:
        LabError: the workers of this machine could not be started.
        UsageError: Dask's settings have no certificates.
    """
    from distributed import Security  # noqa: PLC0415  # the extra dask

    if cluster == LOCAL:
        with _local() as contact:
            secret = {
                "tls_ca_file": contact["ca"],
                "tls_client_cert": contact["cert"],
                "tls_client_key": contact["key"],
            }
            yield contact["address"], Security(require_encryption=True, **secret)  # type: ignore[no-untyped-call]
        return
    security: Any = Security()  # type: ignore[no-untyped-call]
    if not (security.tls_ca_file and security.tls_client_cert and security.tls_client_key):
        raise UsageError(
            f"--cluster: found no certificates in Dask's settings; expected {CERTIFICATES}. "
            "Set them (docs/scale.md#certificates)."
        )
    yield cluster, security


@contextmanager
def _local() -> Iterator[dict[str, str]]:
    """A process of its own has the scheduler: it loads what workers send, which the run's process must not
    (no_pickles.py).
    """
    # A session of its own: Ctrl-C is for the run, which ends its cells first. It ends with its input, also if this
    # process is killed.
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", __spec__.name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        contact: dict[str, str] = json.loads(line) if line else {"error": "that its process ended"}
        if "error" in contact:
            raise LabError(
                f"--cluster {LOCAL}: found {contact['error']}; expected workers that start. Use --executor local."
            )
        yield contact
    finally:
        process.stdin.close()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def main() -> None:
    """A scheduler and a worker for each core, until the input ends; says how they are reached, as a line of JSON, or
    what is wrong.
    """
    from distributed import LocalCluster  # noqa: PLC0415  # the extra dask

    workers = len(os.sched_getaffinity(0))
    # A guest's memory is not the worker's, so Dask must not judge it.
    options: dict[str, Any] = {"dashboard_address": None, "memory_limit": 0, "silence_logs": 50}
    try:
        cluster = LocalCluster(n_workers=workers, threads_per_worker=1, security=True, **options)  # type: ignore[no-untyped-call]
    except (OSError, RuntimeError, ValueError) as error:
        _say({"error": str(error)})
        return
    with cluster:
        settings = cluster.security.get_tls_config_for_role("client")
        _say(
            {
                "address": cluster.scheduler_address,
                "ca": settings["ca_file"],
                "cert": settings["cert"],
                "key": settings["key"],
            }
        )
        sys.stdin.read()


def _say(fields: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
