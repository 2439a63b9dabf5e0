"""The program: help, errors in one place, exit codes."""

import errno
import json
import re
from pathlib import Path

import pytest

from scpslab.cli import app
from scpslab.core import errors
from scpslab.scenario.presets import PRESETS

from scpslab.kinds.stacks.scps import scenario as scps

DOCS = Path(__file__).parents[3] / "docs" / "cli.md"


def test_help_names_every_command_and_exit_code(scpslab):
    code, out, _ = scpslab("--help")
    assert code == 0
    for command in ("list", "validate", "plan", "run", "schema"):
        assert f"\n  {command} " in out
    for number in (
        "0 done",
        "1 some cells failed",
        "2 invalid",
        "3 this machine",
        "4 the lab",
        "5 a run folder",
        "130 interrupted",
    ):
        assert number in " ".join(out.split())


def test_scenario_error_is_a_line_and_exit_code_2(scpslab):
    code, out, err = scpslab("validate", "fy97/fig04:kernel", "--set", "repeats=0")
    assert (code, out) == (2, "")
    assert err == "error: --set repeats=0: repeats: found 0; expected at least 1. Correct the value.\n"


@pytest.mark.parametrize(
    "words", [["nonsense"], ["validate"], ["plan", "fy97/fig04:kernel", "--nonsense"], ["list", "--what", "nonsense"]]
)
def test_bad_command_line_is_exit_code_2(scpslab, words):
    code, _, err = scpslab(*words)
    assert code == 2
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (errors.ScenarioError, 2),
        (errors.UsageError, 2),
        (errors.CapabilityError, 3),
        (errors.LabError, 4),
        (errors.ResultError, 5),
        (errors.ScpslabError, 1),
    ],
)
def test_exit_codes_of_errors(scpslab, monkeypatch, raised, code):
    def broken(_words):
        raise raised("place: found this; expected that. Do something.\nplace: found more; expected less. Do it.")

    monkeypatch.setattr(app, "program", broken)
    assert scpslab("list") == (
        code,
        "",
        "error: place: found this; expected that. Do something.\nerror: place: found more; expected less. Do it.\n",
    )


def test_system_error_is_told_without_a_traceback(scpslab, monkeypatch):
    def broken(_words):
        raise OSError(28, "No space left on device", "runs/x")

    monkeypatch.setattr(app, "program", broken)
    code, _, err = scpslab("list")
    assert code == 4
    assert err.startswith(
        "error: runs/x: found No space left on device; expected the system to allow it. Free disk space there"
    )
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOTDIR, "Choose another path, or move what is there."),
        (errno.EACCES, "Choose a folder in which you may write, or change its permissions."),
        (errno.EIO, 'Run "scpslab doctor" to check this machine.'),
    ],
)
def test_a_path_that_cannot_be_used_is_not_the_machine_s_fault(scpslab, monkeypatch, number, remedy):
    def broken(_words):
        raise OSError(number, "Refused", "runs/x")

    monkeypatch.setattr(app, "program", broken)
    assert scpslab("list") == (4, "", f"error: runs/x: found Refused; expected the system to allow it. {remedy}\n")


def test_exit_codes_are_documented():
    documented = dict(re.findall(r"^\| (\d+) \| (.+?) \|", DOCS.read_text(), re.MULTILINE))
    assert set(documented) == {"0", "1", "2", "3", "4", "5", "130"}


@pytest.mark.parametrize("command", app.COMMANDS)
def test_commands_are_documented(command):
    assert f"`scpslab {command}" in DOCS.read_text()


def test_only_the_wanted_command_is_loaded():
    def names(words):
        return {command.name for command in app.program(words).registered_commands}

    assert names(["plan", "x"]) == {"plan"}
    assert names([]) >= {"list", "plan", "validate"}


def test_validate_says_what_it_checked(scpslab):
    code, out, _ = scpslab("validate", "fy97/fig04:kernel-test")
    assert code == 0
    assert out.startswith("fy97/fig04:kernel-test: ")
    assert out.endswith("all planned\n  transfer: ws1 → lan1 → r1 ─hop→ r2 → lan2 → ws2; back the same way\n")


def test_validate_checks_variants_too(scpslab, tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text(
        (Path(__file__).parents[2] / "data" / "small-scenario.yaml").read_text()
        + "variants:\n  wild: {sweep: {ber: [3]}}\n"
    )
    code, _, err = scpslab("validate", str(path))
    assert code == 2
    assert "found 3; expected at most 1" in err


def test_resolved_scenario_is_yaml_with_defaults(scpslab):
    code, out, _ = scpslab("validate", "fy97/fig04:kernel-test", "--resolved")
    assert code == 0
    assert "lan_rate: 10 Mbit/s" in out
    assert "variants" not in out


def test_plan_lists_cells_and_prints_one(scpslab):
    code, out, _ = scpslab("plan", "fy97/fig04:kernel-test")
    first = out.splitlines()[0]
    assert (code, first) == (0, "stack=fy97-reno,errors=clustered,ber=0,r1")
    code, out, _ = scpslab("plan", "fy97/fig04:kernel-test", "--cell", first)
    assert json.loads(out)["cell"]["id"] == first
    code, _, err = scpslab("plan", "fy97/fig04:kernel-test", "--cell", first + "0")
    assert code == 2
    assert f"Did you mean {first}?" in err


@pytest.mark.slow
def test_list_shows_scenarios_topologies_and_presets(scpslab):
    code, out, _ = scpslab("list", "--what", "all")
    assert code == 0
    for word in ("fy97/fig04", ":kernel-demo", "point_to_point", "data_rate", "2 Mbit/s", "fy97-reno"):
        assert word in out


def test_list_shows_the_presets_of_every_stack(scpslab):
    _, out, _ = scpslab("list", "--what", "presets")
    listed = {tuple(line.split()[:2]) for line in out.splitlines()[1:]}
    assert listed == {("kernel", name) for name in PRESETS} | {("scps", name) for name in scps.PRESETS}


def test_schema_check_passes_on_the_committed_files(scpslab):
    assert scpslab("schema", "--check")[0] == 0


@pytest.mark.parametrize("command", ["validate", "plan"])
def test_who_types_an_old_name_is_told_the_new_one_once(scpslab, command):
    code, out, err = scpslab(command, "fy97/fig04-kernel:test")

    assert code == 0
    assert err == "fy97/fig04-kernel:test is now called fy97/fig04:kernel-test.\n"
    assert out == scpslab(command, "fy97/fig04:kernel-test")[1]


def test_a_command_without_its_module_is_an_error_and_not_left_out(monkeypatch):
    """A typing error in the table of commands shows at once."""
    monkeypatch.setitem(app.COMMANDS, "plot", ("scpslab.cli.plott", "Draw."))
    with pytest.raises(ModuleNotFoundError, match="plott"):
        app.program(["plot"])


@pytest.mark.parametrize("command", app.COMMANDS)
def test_the_list_of_commands_says_what_each_command_s_own_help_says(command):
    made = app.program([command])
    (registered,) = (*made.registered_commands, *made.registered_groups)
    assert registered.name == command
    said = registered.callback.__doc__ if made.registered_commands else registered.typer_instance.info.help
    assert (said or "").splitlines()[0] == app.COMMANDS[command][1]


def test_validate_warns_of_a_sweep_that_changes_nothing(scpslab, tmp_path):
    text = (DOCS.parents[1] / "tests" / "data" / "small-scenario.yaml").read_text()
    idle = text.replace("model: independent, ber: 1e-6", "model: none").replace("links.hop.*", "links.hop.data")
    (path := tmp_path / "idle.yaml").write_text(idle)
    code, out, err = scpslab("validate", str(path))
    assert (code, out) == (0, "idle: Small: 6 cells, all planned\n  transfer: h1 ─hop→ h2; back the same way\n")
    assert err.startswith(
        f'warning: {path}:16: sweep: found one plan for "ber=0,r1", "ber=1e-06,r1" and "ber=1e-05,r1"'
    )


def test_the_version_is_that_of_the_project(scpslab):
    declared = re.search(r'^version = "(.+)"', (DOCS.parents[1] / "pyproject.toml").read_text(), re.MULTILINE)
    assert scpslab("--version") == (0, f"scpslab {declared[1]}\n", "")


def test_a_wrong_name_is_answered_with_the_nearest_names_only(scpslab):
    code, _, err = scpslab("validate", "fy97/fig40")
    assert code == 2
    assert re.search(r"expected one of (fy97/fig\d\d, ){4,6}… \(\d+ names\)\. Did you mean fy97/fig\d\d\?", err)


def test_an_override_that_a_variant_cannot_have_names_the_variant(scpslab):
    _, _, err = scpslab("validate", "fy97/fig04", "--set", "sweep.stack=[bbr]")
    assert (
        'error: fy97/fig04:era: --set sweep.stack=[bbr]: found the case "bbr"; '
        "expected one of fy97-reno, scps-rate, scps-vegas." in err
    )
