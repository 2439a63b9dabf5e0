"""Descriptions of clusters: what is wrong is said with its place, and job schedulers are asked for what the file says."""

from __future__ import annotations

import pytest

from scpslab.errors import CapabilityError, ScenarioError, UsageError
from scpslab.running.clusters import KEYS, QUEUES, Cluster, load_cluster, queue_options

HEAD = "kind: cluster\nversion: 1\n"


@pytest.fixture
def made(tmp_path):
    """Writes a file."""

    def write(text):
        (tmp_path / "c.yaml").write_text(HEAD + text)
        return tmp_path / "c.yaml"

    return write


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("scheduler: slurm\n", 'c.yaml:3: scheduler: found "slurm" without workers; expected workers. Add it'),
        ("scheduler: ssh\nhosts: [a]\nqueue: long\n", 'c.yaml:5: queue: found a key that "ssh" does not have; expected hosts, workers, python. Remove it'),
        ("scheduler: sge\n", 'c.yaml:3: scheduler: found "sge"; expected one of'),
        ("scheduler: address\naddress: nowhere\n", "c.yaml:4: address: found"),
        ("scheduler: slurm\nworkers: 0\n", "c.yaml:4: workers: found 0; expected"),
        ("scheduler: slurm\nworkers: 2\nwalltime: soon\n", "c.yaml:5: walltime: found"),
        ("scheduler: htcondor\nworkers: 2\nqueue: long\n", 'c.yaml:5: queue: found a key that "htcondor" does not have'),
        ('scheduler: htcondor\nworkers: 2\ndirectives: ["a = b", "--qos=short"]\n', 'directives[1]: found "--qos=short"; expected name = value'),
        ('scheduler: slurm\nworkers: 2\nprologue: ["a\\nb"]\n', "prologue[0]: found"),
    ],
)
def test_a_file_that_is_wrong_says_where(made, text, words):
    with pytest.raises(ScenarioError) as caught:
        load_cluster(made(text))
    assert words in str(caught.value)


@pytest.mark.parametrize("kind", QUEUES)
def test_a_job_is_a_worker_that_ends_before_its_job_does(made, kind):
    jobqueue = pytest.importorskip("dask_jobqueue")
    wants_wall = kind != "htcondor"
    text = f"scheduler: {kind}\nworkers: 3\nmemory: 3 GB\nprologue: [export A=b]\n" + ("walltime: 2 h\nqueue: long\n" if wants_wall else "")
    options = queue_options(load_cluster(made(text)))
    script = getattr(jobqueue, QUEUES[kind]).job_cls(scheduler="tcp://head:8786", name="w", **options).job_script()
    assert "--nthreads 1" in script
    assert "export A=b" in script
    assert ("--lifetime 7140s" if wants_wall else "--lifetime 3540s") in script
    assert "tcp://head:8786" in script


ASKED = """\
workers: 20
memory: 3 GiB
walltime: 90 min
account: physics
prologue: ["export SCPSLAB_CACHE=/shared/scpslab"]
python: /shared/env/bin/python
"""
# What each scheduler reads; the forms are those of its own manual.
LINES = {
    "slurm": [
        "#SBATCH -p short",
        "#SBATCH -A physics",
        "#SBATCH -n 1",
        "#SBATCH --cpus-per-task=1",
        "#SBATCH --mem=3G",
        "#SBATCH -t 01:30:00",
        "#SBATCH --qos=low",
    ],
    "pbs": ["#PBS -q short", "#PBS -A physics", "#PBS -l select=1:ncpus=1:mem=3072MB", "#PBS -l walltime=01:30:00", "#PBS -m n"],
    "lsf": ["#BSUB -q short", '#BSUB -P "physics"', "#BSUB -n 1", "#BSUB -M 3221226", "#BSUB -W 01:30", "#BSUB -r"],
    "htcondor": [
        "MY.DaskWorkerCores = 1",
        "MY.DaskWorkerMemory = 3221225472",
        "RequestCpus = MY.DaskWorkerCores",
        "RequestMemory = floor(MY.DaskWorkerMemory / 1048576)",
        "accounting_group = physics",
        '+ProjectName = "links"',
    ],
}
DIRECTIVES = {"slurm": "--qos=low", "pbs": "-m n", "lsf": "-r", "htcondor": '+ProjectName = "links"'}


@pytest.mark.parametrize("kind", QUEUES)
def test_a_job_script_has_the_lines_of_its_scheduler(made, kind):
    jobqueue = pytest.importorskip("dask_jobqueue")
    queue = "" if kind == "htcondor" else "queue: short\n"
    file = load_cluster(made(f"scheduler: {kind}\n{ASKED}{queue}directives: ['{DIRECTIVES[kind]}']\n"))

    script = getattr(jobqueue, QUEUES[kind]).job_cls(scheduler="tcp://head:8786", name="w", **queue_options(file)).job_script()

    lines = script.splitlines()
    assert [line for line in LINES[kind] if line not in lines] == []
    (worker,) = [line for line in lines if "distributed.cli.dask_worker" in line]
    for words in ("/shared/env/bin/python -m", " tcp://head:8786 ", " --nthreads 1 ", " --lifetime 5340s "):
        assert words in worker
    before = worker if kind == "htcondor" else lines[lines.index(worker) - 1]
    assert "export SCPSLAB_CACHE=/shared/scpslab" in before


def test_a_cluster_is_named_in_three_ways(made):
    assert Cluster.parse("tcp://10.0.0.1:8786").file.address == "tcp://10.0.0.1:8786"
    assert Cluster.parse("local").file.scheduler == "local"
    assert Cluster.parse(str(made("scheduler: ssh\nhosts: [one, two]\n"))).file.hosts == ("one", "two")
    for text in ("", "head", "head:x", "http://head:80/x"):
        with pytest.raises(UsageError, match="--cluster: found"):
            Cluster.parse(text)
    with pytest.raises(ScenarioError, match="expected a cluster file"):
        Cluster.parse("missing.yaml")


def test_without_the_extra_the_run_says_what_to_install(run_fake, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CapabilityError, match=r'Run: pip install "scpslab\[dask\]"'):
        run_fake(executor="dask", cluster="local")


def test_an_engine_that_no_machine_repeats_stays_here(run_fake):
    pytest.importorskip("distributed")
    with pytest.raises(UsageError, match="expected virtual, whose results are the same on every machine"):
        run_fake(executor="dask", cluster="local", repeats=False)


def test_every_kind_says_which_keys_it_has():
    assert set(QUEUES) < set(KEYS)
