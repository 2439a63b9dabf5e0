"""The Dask cluster that runs a run's cells, by its scheduler's address.

The run's process loads no pickle that Dask brings: whoever makes one runs a program where it is loaded. What workers
answer is bytes (remote.py). Dask's client would load results, their types, errors, tracebacks, warnings and parts of
messages. It does so in many places, and all of them call one function.
"""

import logging
import pickle
import pickletools
import re
from types import SimpleNamespace
from typing import Any

from scpslab.core.errors import CapabilityError, UsageError

ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss)://)?[A-Za-z0-9.\-\[\]:_]+:[0-9]{1,5}", re.ASCII)
ENCRYPTED = ("tls://", "wss://")
CERTIFICATES = "distributed.comm.tls.ca-file, and cert and key of client, scheduler and worker"
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
    """The address of a scheduler that a person names.

    Raises:
        UsageError: it is none, or its connections are open to everybody.
    """
    if not ADDRESS.fullmatch(cluster):
        expected = "expected an address such as tls://head:8786. Correct it."
        raise UsageError(f'--cluster: found "{cluster[:80]}"; {expected}')
    if not cluster.startswith(ENCRYPTED):
        found = f"found {cluster} without TLS, which lets everybody who reaches the scheduler run programs as you"
        advice = "Start scheduler and workers with certificates (docs/scale.md#certificates)."
        raise UsageError(f"--cluster: {found}; expected tls://. {advice}")
    return cluster


def security() -> Any:
    """What both ends prove who they are with (distributed.Security).

    Raises:
        UsageError: Dask's settings have no certificates.
    """
    from distributed import Security  # noqa: PLC0415  # the extra dask

    found: Any = Security()
    if not (found.tls_ca_file and found.tls_client_cert and found.tls_client_key):
        advice = "Set them (docs/scale.md#certificates)."
        raise UsageError(f"--cluster: found no certificates in Dask's settings; expected {CERTIFICATES}. {advice}")
    return found


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
