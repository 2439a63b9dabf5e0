"""Runs on the user's own topology: folder and archive carry it, and a stranger's topology is not run."""

import hashlib
import json
import os
import shutil

import pytest

from scpslab.core.errors import ResultError, ScenarioError
from scpslab.running import RunOptions
from scpslab.running.verify import contradictions, verify
from scpslab.runs.archive import read_archive, write_archive
from tests import archives
from tests.networks import RELAY, ROVER

pytestmark = pytest.mark.usefixtures("in_this_process")

SCENARIO = ROVER + "sweep: {rate: {set: [parameters.data_rate], values: [1 Mbit/s, 2 Mbit/s]}}\n"
TREASON = "\nopen({!r}, 'w').close()\n"


@pytest.fixture
def mine(tmp_path):
    """A scenario with its topology."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "relay.py").write_text(RELAY)
    (folder / "rover.yaml").write_text(SCENARIO)
    return folder


@pytest.fixture
def archive(mine, run_fake, tmp_path):
    """A run of it, packed."""
    return write_archive([run_fake(str(mine / "rover.yaml")).folder], tmp_path / "rover.tar.gz")


def tampered(archive, target, **changes):
    """An archive whose files were changed, and its list of digests with them."""
    files = archives.members(archive)
    for member, content in files.items():
        if change := changes.get(member.rpartition("/")[2].replace(".", "_")):
            files[member] = change(content)
    return archives.pack(archives.listed(files), target)


def test_the_run_folder_and_the_archive_carry_the_topology(mine, run_fake, archive):
    folder = run_fake(str(mine / "rover.yaml")).folder
    assert (folder / "relay.py").read_text() == RELAY
    assert "topology: ./relay.py" in (folder / "scenario.resolved.yaml").read_text()
    record = json.loads((folder / "topologies.json").read_text())
    assert record["files"]["./relay.py"]["sha256"] == hashlib.sha256(RELAY.encode()).hexdigest()
    (archived,) = read_archive(archive)
    assert {name: archived.digest.inputs[name] for name in archived.own} == {
        name: hashlib.sha256(data).hexdigest() for name, data in archived.own.items()
    }
    assert set(archived.own) == {"relay.py", "topologies.json"}


def test_a_changed_topology_is_another_run(mine, run_fake):
    first = run_fake(str(mine / "rover.yaml")).folder
    assert run_fake(str(mine / "rover.yaml")).folder == first
    (mine / "relay.py").write_text(RELAY + "# changed\n")
    assert run_fake(str(mine / "rover.yaml")).folder != first
    assert (first / "relay.py").read_text() == RELAY


@pytest.fixture
def mark(tmp_path):
    """The file that the topology of `evil` makes where it is run."""
    return tmp_path / "treason"


@pytest.fixture
def evil(archive, tmp_path, mark):
    """The archive with more in its topology."""
    more = TREASON.format(str(mark)).encode()
    return tampered(archive, tmp_path / "evil.tar.gz", relay_py=lambda content: content + more)


def test_plans_of_an_archive_come_from_its_networks_and_its_topology_is_not_run(evil, mine, mark):
    (run,) = read_archive(evil)
    for file in mine.iterdir():
        file.unlink()
    assert contradictions(run) == []
    assert not mark.exists()
    assert contradictions(run, is_trusted=True) == []
    assert mark.exists()


def test_verify_runs_the_topology_only_when_it_is_trusted(evil, mark, tmp_path):
    (compared,) = verify(evil, RunOptions(jobs=1))
    assert compared.is_same
    assert not mark.exists()
    assert [note[:22] for note in compared.notes] == ["its topology relay.py "]
    assert "was not run" in compared.notes[0]
    (trusted,) = verify(evil, RunOptions(jobs=1, trust=True), keep=tmp_path / "kept")
    assert trusted.is_same
    assert trusted.notes == ()
    assert mark.exists()
    assert [path.name for path in (tmp_path / "kept").glob("*/topologies.json")] == ["topologies.json"]


def test_a_network_that_does_not_give_the_plans_is_a_contradiction(archive, tmp_path):
    changed = tampered(
        archive,
        tmp_path / "b.tar.gz",
        topologies_json=lambda content: content.replace(b'"limit_bytes": 64000', b'"limit_bytes": 64001'),
    )
    found = contradictions(read_archive(changed)[0])
    assert found == [
        f"cell rate={rate},r1: network.links[0].directions[0].queue.limit_bytes: found 64000; the scenario gives 64001"
        for rate in ("1Mbits", "2Mbits")
    ]


def test_a_topology_that_does_not_give_the_networks_is_found_when_it_is_trusted(archive, tmp_path):
    changed = tampered(archive, tmp_path / "b.tar.gz", relay_py=lambda content: content.replace(b"64000", b"64001"))
    (run,) = read_archive(changed)
    assert contradictions(run) == []
    assert "the scenario gives 64001" in contradictions(run, is_trusted=True)[0]


@pytest.mark.parametrize("change", [b"{}", b"", b"\xff", b'{"format": 2}', b"[" * 100_000])
def test_a_record_that_is_none_is_a_contradiction_and_no_traceback(archive, tmp_path, change):
    changed = tampered(archive, tmp_path / "b.tar.gz", topologies_json=lambda _: change)
    (found,) = contradictions(read_archive(changed)[0])
    assert found.startswith("the scenario cannot be planned: topologies.json: ")


def test_an_archive_without_a_record_runs_nothing_either(archive):
    (run,) = read_archive(archive)
    del run.own["topologies.json"]
    (found,) = contradictions(run)
    assert 'found "./relay.py" without a record of its networks' in found


@pytest.fixture
def with_vector(tmp_path):
    """A scenario with a stored error vector, and its file."""
    folder = tmp_path / "replayed"
    (folder / "vectors").mkdir(parents=True)
    (folder / "vectors" / "gaps.txt").write_text("100\n200\n")
    errors = "links: {hop: {forward: {errors: {model: vector-file, file: vectors/gaps.txt}}}}"
    ping = "workloads: [{kind: ping, name: ping, from: ws1, to: ws2}]"
    (folder / "mine.yaml").write_text(f"kind: scenario\nversion: 1\ntitle: Vectors\ntopology: fy97\n{errors}\n{ping}\n")
    return folder / "mine.yaml"


def test_an_archive_carries_its_error_vectors_and_is_verified_with_them_alone(with_vector, run_fake, tmp_path):
    archive = write_archive([run_fake(str(with_vector)).folder], tmp_path / "a.tar.gz")
    vector = with_vector.parent / "vectors" / "gaps.txt"
    digest = hashlib.sha256(vector.read_bytes()).hexdigest()
    assert read_archive(archive)[0].own == {f"vectors/{digest}": b"100\n200\n"}
    # Whatever lies there now is somebody else's.
    vector.unlink()
    os.mkfifo(vector)
    (compared,) = verify(archive, RunOptions(jobs=1))
    assert compared.is_same


def test_an_archive_without_its_error_vectors_is_refused(with_vector, run_fake, tmp_path, told):
    run = run_fake(str(with_vector)).folder
    shutil.rmtree(run / "vectors")
    archive = write_archive([run], tmp_path / "a.tar.gz")
    told("error vectors of others", "not in the archive", verify, archive, RunOptions(jobs=1), error=ResultError)


@pytest.mark.parametrize("name", ["/proc/kmsg", "../gaps.txt", "vectors/out.txt", "vectors/through/gaps.txt"])
def test_an_error_vector_lies_in_its_scenario_s_folder(with_vector, run_fake, tmp_path, name, told):
    (tmp_path / "gaps.txt").write_text("100\n")
    (with_vector.parent / "vectors" / "out.txt").symlink_to(tmp_path / "gaps.txt")
    (with_vector.parent / "vectors" / "through").symlink_to(tmp_path)
    with_vector.write_text(with_vector.read_text().replace("vectors/gaps.txt", name))
    told("error vectors of others", name, run_fake, str(with_vector), error=ScenarioError)


def test_what_a_user_puts_into_the_run_s_folder_or_changes_there_survives_a_resumed_run(mine, run_fake):
    for kind in ("figures", "claims"):
        (mine / kind).mkdir()
        (mine / kind / "beside.yaml").write_text("beside: 1\n")
        (mine / kind / "edited.yaml").write_text("beside: 2\n")
    folder = run_fake(str(mine / "rover.yaml")).folder
    for kind in ("figures", "claims"):
        (folder / kind / "own.yaml").write_text("own: 1\n")
        (folder / kind / "edited.yaml").write_text("own: 2\n")
        (mine / kind / "beside.yaml").unlink()
        (mine / kind / "later.yaml").write_text("beside: 3\n")
    assert run_fake(str(mine / "rover.yaml")).folder == folder
    for kind in ("figures", "claims"):
        found = {path.name: path.read_text() for path in (folder / kind).iterdir()}
        assert found == {"own.yaml": "own: 1\n", "edited.yaml": "own: 2\n", "later.yaml": "beside: 3\n"}
