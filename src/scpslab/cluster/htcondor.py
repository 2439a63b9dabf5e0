"""A submit file for HTCondor."""

from __future__ import annotations

import shlex

from scpslab.cluster.job import Job


def htcondor(job: Job) -> str:
    """The file for condor_submit. HTCondor counts jobs from 0."""
    # In its new syntax of arguments, double quotes enclose everything and single quotes enclose a word.
    script = _quoted(f'PATH={shlex.quote(str(job.programs))}:"$PATH" {job.command("$INT(Number)")}')
    places = " ".join(f"{name}='{_quoted(folder)}'" for name, folder in job.places)
    lines = [
        *job.head("condor_submit THIS-FILE"),
        "# The machines share the folder from which you submit. They take kernel, guest image and stack from SCPSLAB_CACHE.",
        "universe = vanilla",
        "Number = $(Process) + 1",
        "executable = /bin/bash",
        "transfer_executable = false",
        "should_transfer_files = NO",
        f'environment = "{places}"',
        "getenv = PATH, HOME",
        f"arguments = \"-c '{script}'\"",
        f"request_cpus = {job.cores}",
        "# Each core has a guest and the template that it is forked from.",
        f"request_memory = {job.memory_mib} MB",
        "# Three times what is expected, and ten minutes; then it is put back into the queue, and resumes.",
        "periodic_release = (NumJobStarts < 5) && (time() - EnteredCurrentStatus > 60)",
        f"allowed_job_duration = {job.shard_s}",
        f"output = {job.name}-$(Process).out",
        f"error = {job.name}-$(Process).err",
        f"log = {job.name}.log",
        f"queue {job.shards}",
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A part of a value between both kinds of quotes."""
    return text.replace('"', '""').replace("'", "''")
