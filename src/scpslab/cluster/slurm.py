"""A job array for Slurm."""

from __future__ import annotations

from scpslab.cluster.job import Job


def slurm(job: Job) -> str:
    """The script for sbatch."""
    lines = [
        "#!/bin/bash",
        *job.head("sbatch THIS-FILE"),
        f"#SBATCH --job-name={job.name}",
        f"#SBATCH --array=1-{job.shards}",
        "#SBATCH --nodes=1 --ntasks=1",
        f"#SBATCH --cpus-per-task={job.cores}",
        "# Each core has a guest and the template that it is forked from.",
        f"#SBATCH --mem={job.memory_mib}M",
        "# Three times what is expected, and ten minutes. A shard that is ended at the limit resumes when it is submitted again.",
        f"#SBATCH --time={job.clock}",
        "# Your site may ask for more:",
        "##SBATCH --account=ACCOUNT",
        "##SBATCH --partition=PARTITION",
        "set -euo pipefail",
        *job.surroundings,
        job.command('"$SLURM_ARRAY_TASK_ID"'),
    ]
    return "\n".join(lines) + "\n"
