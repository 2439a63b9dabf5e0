"""Former words are told with their lines, and replaced in a file without another change."""

import pytest
from typer.testing import CliRunner

from scpslab import scenario
from scpslab.cli.app import program
from scpslab.core.errors import ScenarioError
from scpslab.scenario import planning
from scpslab.scenario.migrated import migrated
from scpslab.scenario.topologies import OnDisk

OLD = """\
# A file of 0.3.0.
kind: scenario
version: 1
title: Old words
topology: point_to_point
parameters:
  # Slow back.
  ack_rate: 64 kbit/s   # asymmetric
  framing: 4 B
hosts:
  h1: {preset: modern, congestion: bbr}
  h2: {preset: modern}
workloads:
  - {kind: bulk, name: loss, from: h1, to: h2, size: 100 kB, patience: 300 s}
  - kind: bulk
    name: second
    from: h1
    to: h2
    port: 5005
    size: 100 kB
    patience: 300 s  # long
probes:
  - {kind: verdicts, link: hop, direction: "ack"}
script:
  - do: link  # worse
    at: 5 s
    link: hop
    direction: data
    ber: 1e-5
  - {at: 6 s, node: h1, command: "true", do: run}
sweep:
  response:
    cases:
      slow: {parameters.framing: 8 B, workloads.loss.congestion: reno}
      other:
        parameters.framing: 12 B
        links.hop.data.errors: {model: packet-loss, loss: 0.02}
  delay: {set: [parameters.data_delay, parameters.ack_delay], values: [5 ms, 20 ms]}
limits: {virtual: 400 s}
"""
NEW = """\
# A file of 0.3.0.
kind: scenario
version: 1
title: Old words
topology: point_to_point
# Slow back.
links:
  hop:
    return: {rate: 64 kbit/s, overhead: 4 B}
    forward: {overhead: 4 B}
hosts:
  h1: {preset: modern, congestion_control: bbr}
  h2: {preset: modern}
workloads:
  - {kind: bulk, name: loss, from: h1, to: h2, size: 100 kB, timeout: 300 s}
  - kind: bulk
    name: second
    from: h1
    to: h2
    port: 5005
    size: 100 kB
    timeout: 300 s  # long
probes:
  - {kind: losses, link: hop, direction: "return"}
events:
  - # worse
    at: 5 s
    link: hop
    direction: forward
    ber: 1e-5
  - {at: 6 s, node: h1, command: "true"}
sweep:
  response:
    cases:
      slow: {links.hop.*.overhead: 8 B, workloads.loss.congestion_control: reno}
      other:
        links.hop.*.overhead: 12 B
        links.hop.forward.errors: {model: packet, loss: 0.02}
  delay: {set: [links.hop.forward.delay, links.hop.return.delay], values: [5 ms, 20 ms]}
limits: {lab_time: 400 s}
"""


def plans(path):
    return planning.plans(scenario.cells(scenario.load(str(path))))


def test_every_word_is_replaced_and_comments_stay(write):
    path = write(OLD)
    before = plans(path)
    text, new = migrated(path, OnDisk())
    assert (text, new) == (OLD, NEW)
    path.write_text(new)
    assert plans(path) == before


def test_links_that_a_file_has_keep_their_layout(write):
    own = "links:\n  hop:\n    data: {errors: {ber: 1e-6}}  # noise\n\nworkloads: []\n"
    path = write(OLD[: OLD.index("parameters")] + "parameters: {data_rate: 1 Mbit/s, ack_rate: 9600 bit/s}\n" + own)
    assert migrated(path, OnDisk())[1].partition("point_to_point\n")[2] == (
        "links:\n  hop:\n    forward: {rate: 1 Mbit/s, errors: {ber: 1e-6}}  # noise\n    return: {rate: 9600 bit/s}\n"
        "\nworkloads: []\n"
    )


def test_an_own_value_of_the_link_is_the_one_that_counts(write):
    links = "links: {hop: {data: {rate: 2 Mbit/s}}}\nparameters: {data_rate: 1 Mbit/s}\nlimits: {virtual: 400 s}"
    path = write(OLD[: OLD.index("parameters")] + links + OLD[OLD.index("\nhosts") : OLD.index("sweep")])
    (plan,) = plans(path).values()
    assert plan.network.links[0].directions[0].rate_bps == 2_000_000


def test_names_that_look_like_words_are_names(write):
    text = OLD.replace("name: loss,", "name: patience,").replace("workloads.loss.", "workloads.patience.")
    new = migrated(write(text), OnDisk())[1]
    assert new == NEW.replace("name: loss,", "name: patience,").replace("workloads.loss.", "workloads.patience.")


def test_errors_are_told_at_their_lines_and_both_words_are_one_too_many(write):
    with pytest.raises(ScenarioError, match=r"small.yaml:11: hosts.h1.congestion_control: found \"cubik\""):
        scenario.load(str(write(OLD.replace("congestion: bbr", "congestion: cubik"))))
    with pytest.raises(ScenarioError, match=r"found the unknown key \"\""):
        scenario.load(str(write(f'{OLD}"": 5\n')))
    with pytest.raises(ScenarioError, match=r"found the unknown key \"patience\""):
        scenario.load(str(write(OLD.replace("patience: 300 s}", "patience: 300 s, timeout: 9 s}"))))


def test_notes_name_each_word_once_and_options_have_them_too(write):
    path = write(OLD)
    loaded = scenario.load(str(path), ["workloads.*.patience=20 s", "parameters.data_rate=96 kbit/s"])
    assert {workload.timeout.text for workload in loaded.model.workloads} == {"20 s"}
    assert loaded.model.links["hop"]["forward"].rate == 96_000
    assert f'{path}:14: "patience" is called "timeout" now; run scpslab migrate {path}' in loaded.notes
    assert len([note for note in loaded.notes if "patience" in note]) == 1


def test_a_swept_value_keeps_its_word_in_the_names_of_cells(write):
    sweep = "sweep:\n  model: {set: [links.hop.*.errors.model], values: [independent, packet-loss]}\n"
    path = write(OLD[: OLD.index("sweep")] + sweep + OLD[OLD.index("limits") :])
    found = {
        cell.id: cell.model.links["hop"]["forward"].errors.model for cell in scenario.cells(scenario.load(str(path)))
    }
    assert found == {"model=independent,r1": "independent", "model=packet-loss,r1": "packet"}


def test_the_command_rewrites_or_shows_and_says_what_it_cannot(write, tmp_path):
    path, runner = write(OLD), CliRunner()
    shown = runner.invoke(program(["migrate"]), ["migrate", "--diff", str(path)])
    assert "+limits: {lab_time: 400 s}" in shown.output
    assert path.read_text() == OLD
    runner.invoke(program(["migrate"]), ["migrate", str(path)])
    assert path.read_text() == NEW
    again = runner.invoke(program(["migrate"]), ["migrate", str(path), str(tmp_path / "none.yaml")])
    assert isinstance(again.exception, ScenarioError)
    assert path.read_text() == NEW


def test_a_file_with_both_words_is_left_for_a_person_to_choose(write):
    path = write(OLD.replace("patience: 300 s}", "patience: 300 s, timeout: 9 s}"))
    with pytest.raises(ScenarioError, match=r"small.yaml:14: workloads\[0\].patience: found the unknown key"):
        migrated(path, OnDisk())


@pytest.mark.parametrize("links", ["", " {hop: }", " {hop: {forward: }}"])
def test_a_moved_parameter_goes_where_nothing_stands(write, links):
    text = "kind: scenario\nversion: 1\ntopology: point_to_point\nparameters: {data_rate: 1 Mbit/s}\n"
    work = "workloads: [{kind: bulk, name: t, from: h1, to: h2, size: 1 MB}]\n"
    path = write(f"{text}links:{links}\n{work}")
    assert scenario.load(str(path)).model.links["hop"]["forward"].rate == 1_000_000
    assert "rate: 1 Mbit/s" in migrated(path, OnDisk())[1]


@pytest.mark.parametrize("links", ["{hop: {forward: 5}}", "{hop: {forward: x}}", "{hop: {forward: {queue: 7}}}", "[1]"])
def test_what_is_no_link_is_told_beside_a_moved_parameter(write, links):
    text = (
        "kind: scenario\nversion: 1\ntopology: point_to_point\nparameters: {data_rate: 1 Mbit/s, data_buffer: 9 kB}\n"
    )
    with pytest.raises(ScenarioError, match=r"small.yaml:5: links.*expected keys with values"):
        scenario.load(str(write(f"{text}links: {links}\nworkloads: []\n")))


def test_the_file_that_a_link_names_is_rewritten_and_stays_private(scpslab, tmp_path):
    file, link = tmp_path / "old.yaml", tmp_path / "link.yaml"
    file.write_text(OLD)
    file.chmod(0o600)
    link.symlink_to(file)

    assert scpslab("migrate", link)[0] == 0
    assert link.is_symlink()
    assert file.read_text() != OLD
    assert file.stat().st_mode & 0o777 == 0o600
