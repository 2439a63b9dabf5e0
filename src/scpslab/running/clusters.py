"""The file that describes a cluster (docs/scale.md), and the workers that it stands for."""

from __future__ import annotations

import atexit
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from scpslab import units
from scpslab.documents import Form, Part, key, load
from scpslab.documents.parts import OneOf
from scpslab.documents.quantities import Duration, Size
from scpslab.errors import LabError, UsageError

FORM = Form("a cluster", "kind, version, scheduler, workers", "docs/scale.md")
ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss)://)?[A-Za-z0-9.\-\[\]:_]+:[0-9]{1,5}", re.ASCII)
LOCAL, SSH, ADDRESS_OF, LSF, HTCONDOR = "local", "ssh", "address", "lsf", "htcondor"
# Each with the class of dask-jobqueue for it.
QUEUES = {"slurm": "SLURMCluster", "pbs": "PBSCluster", LSF: "LSFCluster", HTCONDOR: "HTCondorCluster"}
OF_JOBS = ("memory", "walltime", "account", "directives", "prologue", "python")
# The keys that a kind of cluster needs, and those that it may have besides. HTCondor has no queues.
KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    LOCAL: ((), ("workers",)),
    ADDRESS_OF: (("address",), ()),
    SSH: (("hosts",), ("workers", "python")),
    **dict.fromkeys(QUEUES, (("workers",), ("queue", *OF_JOBS))),
    HTCONDOR: (("workers",), OF_JOBS),
}
LEAST_WALL_S = 600
Line = Annotated[str, Field(pattern=r"^[^\x00-\x1f]+$")]
# A line of a submit file for HTCondor.
SUBMIT_LINE = re.compile(r"\s*(\+?[A-Za-z_][\w.]*)\s*=\s*(\S.*)", re.ASCII)


class ClusterFile(Part):
    """Where workers are, or how they are started."""

    kind: Literal["cluster"]
    version: Literal[1]
    scheduler: Annotated[str, OneOf(KEYS)] = key(says="What starts workers; address: a scheduler of Dask that runs.", example="slurm")
    workers: int | None = key(None, says="Workers, each with one core; with ssh: for each host. Default: 1; with local: one per core.", least=1, most=10_000)
    address: Annotated[str, Field(pattern=f"^{ADDRESS.pattern}$")] | None = key(None, says="The scheduler.", example="tcp://head:8786")
    hosts: Annotated[tuple[Line, ...], Field(min_length=1)] | None = key(
        None, says="Machines with ssh and without a password; the first has the scheduler and workers.", example=["head", "node1"]
    )
    python: Line | None = key(None, says="The Python that has scpslab on the workers' machines. Default: this one.")
    memory: Size | None = key(None, says="Memory of a worker, as the job scheduler is asked for it. Default: 2 GB.", example="2 GB")
    walltime: Duration | None = key(
        None, says="Wall time of a worker's job; a minute before, the worker ends. Default: 1 h, and at least 10 min.", example="4 h"
    )
    queue: Line | None = key(None, says="Queue or partition.")
    account: Line | None = key(None, says="The account or project that pays.")
    directives: tuple[Line, ...] | None = key(
        None, says="Further lines for the head of the job script, without the scheduler's mark; with htcondor: name = value.", example=["--qos=short"]
    )
    prologue: tuple[Line, ...] | None = key(None, says="Commands before the worker starts.", example=["export SCPSLAB_CACHE=/shared/scpslab"])


@dataclass(frozen=True)
class Cluster:
    """Workers: their description, and what named it."""

    file: ClusterFile
    named: str

    @classmethod
    def parse(cls, text: str) -> Cluster:
        """The cluster that a person names: the address of a scheduler, `local`, or a YAML file.

        Raises:
            UsageError: it is none of them.
            ScenarioError: everything that is wrong with the file.
        """
        if text == LOCAL:
            return cls(ClusterFile(kind="cluster", version=1, scheduler=LOCAL), text)
        if not Path(text).is_file() and not text.endswith((".yaml", ".yml")):
            if not ADDRESS.fullmatch(text):
                raise UsageError(f'--cluster: found "{text[:80]}"; expected {LOCAL}, an address such as tcp://head:8786, or a YAML file. Correct it.')
            return cls(ClusterFile(kind="cluster", version=1, scheduler=ADDRESS_OF, address=text), text)
        return cls(load_cluster(Path(text)), text)

    def opened(self) -> Any:
        """The cluster of Dask, or the address of its scheduler. A cluster is started once, and ended with this process.

        Raises:
            LabError: it could not be started.
        """
        if self.file.address:
            return self.file.address
        if self not in _opened:
            try:
                _opened[self] = self._open()
            except (OSError, RuntimeError, ValueError) as error:
                raise LabError(f"{self.named}: found {error}; expected a cluster that starts. Correct the file, or start the workers yourself.") from error
        return _opened[self]

    def _open(self) -> Any:
        if self.file.scheduler == LOCAL:
            return _local(self.file)
        return _ssh(self.file) if self.file.scheduler == SSH else _queue(self.file)


_opened: dict[Cluster, Any] = {}


@atexit.register
def _close_all() -> None:
    for cluster in _opened.values():
        with suppress(Exception):
            cluster.close(timeout=5)


def load_cluster(path: Path) -> ClusterFile:
    """The cluster of a file.

    Raises:
        ScenarioError: everything that is wrong with the file.
    """
    file, places = load(path, FORM, ClusterFile)
    needed, allowed = KEYS[file.scheduler]
    given = [name for name, value in file if name not in ("kind", "version", "scheduler") and value is not None]
    problems: list[tuple[tuple[str | int, ...], str]] = [
        (("scheduler",), f'found "{file.scheduler}" without {name}; expected {name}. Add it') for name in needed if name not in given
    ]
    problems += [
        ((name,), f'found a key that "{file.scheduler}" does not have; expected {", ".join((*needed, *allowed))}. Remove it')
        for name in given
        if name not in (*needed, *allowed)
    ]
    if file.scheduler == HTCONDOR:
        problems += [
            (("directives", number), f'found "{line[:60]}"; expected name = value, as in a submit file. Correct it')
            for number, line in enumerate(file.directives or ())
            if not SUBMIT_LINE.fullmatch(line)
        ]
    if problems:
        raise places.error(problems)
    return file


def _local(file: ClusterFile) -> Any:
    from distributed import LocalCluster  # noqa: PLC0415  # the extra dask

    workers = file.workers or len(os.sched_getaffinity(0))
    # A guest's memory is not the worker's, so Dask must not judge it.
    options: dict[str, Any] = {"dashboard_address": None, "memory_limit": 0, "silence_logs": 50}
    return LocalCluster(n_workers=workers, threads_per_worker=1, **options)  # type: ignore[no-untyped-call]


def _ssh(file: ClusterFile) -> Any:
    import asyncssh  # noqa: PLC0415  # the extra dask
    from distributed import SSHCluster  # noqa: PLC0415  # the extra dask

    hosts = list(file.hosts or ())
    options = {"nthreads": 1, "n_workers": file.workers or 1, "memory_limit": "0"}
    try:
        return SSHCluster([hosts[0], *hosts], worker_options=options, scheduler_options={"port": 0, "dashboard": False}, remote_python=file.python)
    except asyncssh.Error as error:
        raise RuntimeError(f"ssh: {error}") from error


def queue_options(file: ClusterFile) -> dict[str, Any]:
    """What dask-jobqueue is told: a job for each worker."""
    wall_s = max(LEAST_WALL_S, units.parse("duration", file.walltime or "1 h") // 10**9)
    # LSF has no seconds.
    walltime = f"{wall_s // 3600:02}:{wall_s % 3600 // 60:02}" + ("" if file.scheduler == LSF else f":{wall_s % 60:02}")
    lifetime_s = wall_s - 60
    options: dict[str, Any] = {"cores": 1, "processes": 1, "memory": f"{units.parse('size', file.memory or '2 GB')} B"}
    # Workers end by themselves before their jobs are ended, not all at the same time.
    options["worker_extra_args"] = ["--lifetime", f"{lifetime_s}s", "--lifetime-stagger", f"{lifetime_s // 20}s"]
    if file.scheduler == HTCONDOR:
        options["disk"] = f"{units.parse('size', file.memory or '2 GB')} B"
        found = [SUBMIT_LINE.fullmatch(line) for line in file.directives or ()]
        options["job_extra_directives"] = ({"accounting_group": file.account} if file.account else {}) | {one[1]: one[2] for one in found if one}
    else:
        options |= {"walltime": walltime, "queue": file.queue, "job_extra_directives": list(file.directives or ())}
        options["project" if file.scheduler == LSF else "account"] = file.account
    options["job_script_prologue"] = list(file.prologue or ())
    return options | ({"python": file.python} if file.python else {})


def _queue(file: ClusterFile) -> Any:
    import dask_jobqueue  # noqa: PLC0415  # the extra dask

    cluster = getattr(dask_jobqueue, QUEUES[file.scheduler])(**queue_options(file))
    cluster.scale(jobs=file.workers or 1)
    return cluster
