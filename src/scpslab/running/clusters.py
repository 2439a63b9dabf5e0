"""The Dask cluster that runs a run's cells: a scheduler's address, or workers of this machine that the run starts.

The run's process loads no pickle that Dask brings: whoever makes one runs a program where it is loaded. What workers
answer is bytes (remote.py). Dask's client would load results, their types, errors, tracebacks, warnings and parts of
messages. It does so in many places, and all of them call one function.
"""

import json
import logging
import os
import pickle
import pickletools
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from scpslab.core.errors import CapabilityError, LabError, UsageError

LOCAL = "local"
ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss)://)?[A-Za-z0-9.\-\[\]:_]+:[0-9]{1,5}", re.ASCII)
ENCRYPTED = ("tls://", "wss://")
CERTIFICATES = "distributed.comm.tls.ca-file, and cert and key of client, scheduler and worker"
END_S = 10
# What honest messages cannot do without: the type of bytes, and nothing. They are known by their own bytes, so that no
# pickle is loaded for them either.
HARMLESS = {
    pickle.dumps(value, protocol): value for value in (bytes, None) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
}
LONGEST_TEXT = 300
# What the pickle of an error says besides its class and its message.
AROUND_ERRORS = (
    *("tblib.pickling_support", "unpickle_exception", "unpickle_exception_with_attrs", "builtins", "__dict__", "args"),
)


def check(cluster: str) -> str:
    """The cluster that a person names: `local`, or the address of a scheduler.

    Raises:
        UsageError: it is neither, or its connections are open to everybody.
    """
    if cluster != LOCAL and not ADDRESS.fullmatch(cluster):
        expected = f"expected {LOCAL}, or an address such as tls://head:8786. Correct it."
        raise UsageError(f'--cluster: found "{cluster[:80]}"; {expected}')
    if cluster != LOCAL and not cluster.startswith(ENCRYPTED):
        found = f"found {cluster} without TLS, which lets everybody who reaches the scheduler run programs as you"
        advice = "Start scheduler and workers with certificates (docs/scale.md#certificates)."
        raise UsageError(f"--cluster: {found}; expected tls://. {advice}")
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
            yield contact.pop("address"), Security(require_encryption=True, **contact)
        return
    security: Any = Security()
    if not (security.tls_ca_file and security.tls_client_cert and security.tls_client_key):
        advice = "Set them (docs/scale.md#certificates)."
        raise UsageError(f"--cluster: found no certificates in Dask's settings; expected {CERTIFICATES}. {advice}")
    yield cluster, security


@contextmanager
def _local() -> Iterator[dict[str, str]]:
    """A process of its own has the scheduler: it loads what workers send, which the run's process must not."""
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
            advice = "Use --executor local."
            raise LabError(f"--cluster {LOCAL}: found {contact['error']}; expected workers that start. {advice}")
        yield contact
    finally:
        process.stdin.close()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


class RefusedError(TypeError):
    """Somebody sent a pickle. Where Dask expects that loading may fail, it expects a TypeError."""


def refuse() -> None:
    """From now on this process loads no pickle that comes through Dask, so no scheduler can run in it.

    Raises:
        CapabilityError: the installed version of Dask has another way.
    """
    from distributed import client  # noqa: PLC0415  # the extra dask
    from distributed.protocol import core  # noqa: PLC0415
    from distributed.protocol import pickle as loader  # noqa: PLC0415
    from distributed.protocol.serialize import Serialize, ToPickle  # noqa: PLC0415

    # It would log each refusal with a traceback.
    logging.getLogger("distributed.protocol").setLevel(logging.CRITICAL + 1)
    instead = SimpleNamespace(**(vars(pickle) | {"loads": _loads, "load": _loads, "Unpickler": _loads}))
    for module in (loader, client):
        setattr(module, "pickle", instead)  # noqa: B010 (no type that mypy knows)
    for message in (Serialize(RefusedError()), ToPickle(RefusedError())):
        try:
            core.loads(core.dumps({"message": message}))
        except RefusedError:
            continue
        expected = "expected one that scpslab knows. Install the versions of its extra dask."
        raise CapabilityError(f"distributed: found a version that loads pickles unasked; {expected}")


def error_texts(content: object) -> tuple[str, ...]:
    """The texts in the pickle of an error, its class and message first, without loading it; empty if it is no
    pickle.
    """
    found: list[str] = []
    try:
        for _, value, _ in pickletools.genops(content if isinstance(content, bytes) else b""):
            found += [value[:LONGEST_TEXT]] if isinstance(value, str) and value not in AROUND_ERRORS else []
    except Exception:
        # Whatever a stranger's bytes do to the parser.
        return ()
    return tuple(found)


def _loads(content: Any, **_buffers: Any) -> Any:
    is_short = isinstance(content, bytes | bytearray | memoryview) and len(content) <= LONGEST_TEXT
    if is_short and bytes(content) in HARMLESS:
        return HARMLESS[bytes(content)]
    raise RefusedError("an object of Python")


def main() -> None:
    """A scheduler and a worker for each core, until the input ends; says how they are reached, as a line of JSON, or
    what is wrong.
    """
    from distributed import LocalCluster  # noqa: PLC0415  # the extra dask

    workers = len(os.sched_getaffinity(0))
    # A guest's memory is not the worker's, so Dask must not judge it.
    try:
        quiet = {"dashboard_address": None, "memory_limit": 0, "silence_logs": 50}
        cluster = LocalCluster(n_workers=workers, threads_per_worker=1, security=True, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        _say({"error": str(error)})
        return
    with cluster:
        settings = cluster.security.get_tls_config_for_role("client")
        files = {"tls_ca_file": "ca_file", "tls_client_cert": "cert", "tls_client_key": "key"}
        _say({"address": cluster.scheduler_address, **{name: settings[key] for name, key in files.items()}})
        sys.stdin.read()


def _say(fields: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
