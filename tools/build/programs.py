"""The guest's small programs (images/guest/tools), compiled by their own Makefile."""

from scpslab.setup.job import Job


def build(job: Job) -> None:
    """Compiles the programs of the recipe folder into the folder that is the target."""
    job.target.mkdir()
    with job.step("compile"):
        job.run(["make", f"OUT={job.target}"], cwd=job.recipe)
