"""Job scripts that run the shards of a scenario on many machines. One file per scheduler, one line in SCRIPTS."""

from collections.abc import Callable

from scpslab.cluster.htcondor import htcondor
from scpslab.cluster.job import Job
from scpslab.cluster.slurm import slurm
from scpslab.cluster.ssh import ssh

SCRIPTS: dict[str, Callable[[Job], str]] = {"slurm": slurm, "htcondor": htcondor, "ssh": ssh}

__all__ = ["SCRIPTS", "Job"]
