"""Tasks for INGInious: right answers are those of the capture, and what a student is shown does not have them.

With INGInious and its plugin network-trace (github.com/cnp3/INGInious-problems-network-trace) among the packages, they
read the tasks and mark answers themselves.
"""

import gettext
import importlib
import json
import re
import shutil
from xml.etree import ElementTree as ET

import pytest
import yaml

from scpslab.analysis.lost_packets import resend_columns, sender_s_capture
from scpslab.analysis.run import open_run
from scpslab.core.errors import CapabilityError, UsageError
from scpslab.running import RunOptions, run_scenario
from scpslab_course.course.answers import read_practice
from scpslab_course.course.assignment import find, load_assignment
from scpslab_course.course.inginious import BEFORE, CHOICES, RIGHT_EDGE, task_of
from tests.lab.command import scpslab

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
PICKS = [0, 5, 10**40 + 7]


@pytest.fixture(scope="module", params=["fy97-reno", "modern"])
def runs(tmp_path_factory, request):
    """Runs of read-a-trace's practice variant, without and with selective acknowledgements."""
    assignment = load_assignment(find("read-a-trace"))
    mine = assignment.settings(read_practice(assignment).variant.parameters, "trace")
    hosts = [f"hosts.{name}.preset={request.param}" for name in ("ws1", "ws2")]
    options = RunOptions(out=tmp_path_factory.mktemp("runs"), overrides=[*mine, *hosts])
    return [run_scenario(str(assignment.scenario("trace")), options).folder]


@pytest.fixture(params=PICKS, ids=["first", "fifth", "digest"])
def task(runs, request):
    """The files of a task, its task.yaml read."""
    files = task_of(runs, "Read a trace (1)", request.param)
    return yaml.safe_load(files["task.yaml"]), files


def questions(task):
    """Of each question on fields: its name, its frame, and the packet with the names of its hidden fields."""
    said, files = task
    for name, problem in said["problems"].items():
        if problem["type"] == "network-trace":
            packets = ET.fromstring(files[problem["trace"]]).findall("packet")  # noqa: S314 (our own output)
            ((place, hidden),) = problem["hide"].items()
            yield name, int(name.removeprefix("frame")), packets[place], hidden


def frames_of(task):
    """The frames that each question shows."""
    for name, content in task[1].items():
        if name.endswith(".pdml"):
            root = ET.fromstring(content)  # noqa: S314 (our own output)
            yield {int(one.get("show")) for one in root.iterfind(".//field[@name='num']")}


def right_answers(task):
    """What the plugin's form and a student's choice send, if everything is right."""
    said, right = task[0], {}
    for name, _, packet, hidden in questions(task):
        place = next(iter(said["problems"][name]["hide"]))
        right[name] = [str(number) for number in range(20)]
        right |= {f"{name}:{place}:{one}": packet.find(f".//field[@name='{one}']").get("show") for one in hidden}
    choices = {name: one["choices"] for name, one in said["problems"].items() if one["type"] == "multiple_choice"}
    return right | {name: str([choice["valid"] for choice in of].index(True)) for name, of in choices.items()}


def connection_of(runs):
    """The transfer as the laboratory's own decoder reads it, its cell, and frames by place in it."""
    (cell,) = open_run(runs[0]).cells
    name = sender_s_capture(cell)
    connection, frames = cell.connection(name, cell.plan.cell.workloads[0]), cell.packets(name).frame
    return cell, connection, {int(frames[packet]): place for place, packet in enumerate(connection.packet)}


@needs_tshark
def test_right_answers_are_what_the_laboratory_s_own_decoder_reads(runs, task):
    _, connection, places = connection_of(runs)
    asked = list(questions(task))

    assert len(asked) >= 5
    for _, frame, packet, hidden in asked:
        place = places[frame]
        # tshark counts a SYN as byte 0.
        right = {
            "tcp.seq": int(connection.seq[place]) + 1,
            "tcp.ack": int(connection.ack[place]) + 1,
            "tcp.flags": int(connection.flags[place]),
        }
        if (connection.sack_packet == place).sum() == 1:
            right[RIGHT_EDGE] = int(connection.sack_right[connection.sack_packet == place][0]) + 1
        for name in set(hidden) & set(right):
            (field,) = packet.findall(f".//field[@name='{name}']")
            assert int(field.get("show"), 0) == right[name], (frame, name)


@needs_tshark
def test_the_reason_is_that_of_the_verdict_log(runs, task):
    cell, _, _ = connection_of(runs)
    columns = resend_columns(cell, "run")
    causes = dict(zip(map(int, columns["resend_frames"].split()), columns["resend_causes"].split(), strict=True))
    words, seen = {text: cause for cause, text in CHOICES.items()}, set()

    for name, problem in task[0]["problems"].items():
        if problem["type"] == "multiple_choice":
            (right,) = (choice["text"] for choice in problem["choices"] if choice["valid"])
            assert words[right] == causes.get(int(name.removeprefix("why")), "first")
            seen.add(words[right])
    assert "first" in seen
    assert len(seen) >= 3


@needs_tshark
def test_nothing_that_is_shown_of_a_packet_has_a_hidden_value(task):
    for _, _, packet, hidden in questions(task):
        tcp = packet.find("proto[@name='tcp']")
        texts = [field.get("showname") or field.get("show") for field in tcp.iter()]
        for name in hidden:
            (field,) = packet.findall(f".//field[@name='{name}']")
            assert field.get("showname").endswith(": ?")
            assert list(field) == []
            value = int(field.get("show"), 0)
            spelt = rf"(?<![\w.])({value}|0x0*{value:x})(?![\w.])"
            # A number of one digit says nothing: it is everywhere.
            assert value < 10 or not [text for text in texts if re.search(spelt, text)], (name, texts)
        assert "checksum" not in str(texts).lower()
        assert tcp.find("field[@name='tcp.seq_raw']") is None


@needs_tshark
def test_blocks_are_asked_where_there_are_some(runs):
    _, connection, _ = connection_of(runs)
    tasks = [task_of(runs, "A", pick) for pick in range(5)]
    asked = [hidden for one in tasks for *_, hidden in questions((yaml.safe_load(one["task.yaml"]), one))]

    assert any(RIGHT_EDGE in hidden for hidden in asked) == bool(len(connection.sack_packet))


@needs_tshark
def test_no_packet_is_shown_for_two_questions(task):
    shown = list(frames_of(task))

    assert len(set.union(*shown)) == sum(map(len, shown))
    assert max(map(len, shown)) == BEFORE + 3


@needs_tshark
def test_the_same_run_gives_the_same_task_and_another_pick_another(runs):
    assert task_of(runs, "A", 5) == task_of(runs, "A", 5)
    assert task_of(runs, "A", 5)["task.yaml"] != task_of(runs, "A", 6)["task.yaml"]


@needs_tshark
def test_a_course_has_tasks_of_traces_of_their_own_and_the_same_ones_again(tmp_path):
    scpslab("course", "new", "satnet", "--assignment", "read-a-trace", folder=tmp_path)
    words = ("course", "inginious", "read-a-trace", "--course", "satnet", "--traces", "2", "--out")
    for out in ("tasks", "again"):
        assert scpslab(*words, out, folder=tmp_path) == f"{out}\n"

    (first, second), again = sorted((tmp_path / "tasks").iterdir()), tmp_path / "again"
    assert (first.name, second.name) == ("read-a-trace-001", "read-a-trace-002")
    said = [yaml.safe_load((one / "task.yaml").read_text()) for one in (first, second)]
    assert said[0]["context"] != said[1]["context"]
    assert all(path.read_bytes() == (again / first.name / path.name).read_bytes() for path in first.iterdir())


def test_what_is_missing_is_named(runs, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="found no trace in its runs; expected a capture at the sender"):
        task_of([], "first-steps", 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CapabilityError, match="tshark: found none; expected it, to read captures"):
        task_of(runs, "A", 0)


@needs_tshark
def test_inginious_reads_the_task_and_marks_every_field(task, tmp_path):
    plugin = pytest.importorskip("inginious-problems-network-trace")
    local = importlib.import_module("inginious.common.filesystems.local")
    kinds = importlib.import_module("inginious.common.tasks_problems").get_default_problem_types()
    factory = importlib.import_module("inginious.frontend.task_factory").TaskFactory
    environments = importlib.import_module("inginious.frontend.environment_types")
    agent = importlib.import_module("inginious.agent.mcq_agent").MCQAgent
    environments.register_base_env_types()
    (tmp_path / "course" / "trace-001").mkdir(parents=True)
    for name, content in task[1].items():
        (tmp_path / "course" / "trace-001" / name).write_bytes(content)

    class Course:
        """What a task asks of its course."""

        def get_id(self):
            return "course"

        def get_fs(self):
            return local.LocalFSProvider(str(tmp_path / "course"))

        def get_translation_obj(self, _):
            return gettext.NullTranslations()

    kinds["network-trace"] = plugin.NetworkTraceProblem
    loaded = factory(local.LocalFSProvider(str(tmp_path)), None, kinds).get_task(Course(), "trace-001")
    problems = loaded.get_problems()
    right = right_answers(task)

    def marked(given):
        assert loaded.input_is_consistent(dict(given), [], 1 << 20)
        return agent.check_answer(None, problems, json.loads(json.dumps(given)), "en")

    assert loaded.get_environment_type() == "mcq"
    is_right, needs_container, *_ = marked(right)
    assert (is_right, needs_container) == (True, False)
    for key in (key for key, value in right.items() if isinstance(value, str)):
        wrong = "7" if ":" in key else str((int(right[key]) + 1) % len(CHOICES))
        is_right, _, _, said, count, *_ = marked({**right, key: wrong})
        assert (is_right, count) == (False, 1), key
        assert said[key.split(":")[0]][0] == "failed"
        assert len(str(said[key.split(":")[0]][1])) > 20
