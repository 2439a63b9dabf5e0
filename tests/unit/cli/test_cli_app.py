"""The program: help, errors in one place, exit codes, and the commands that need no run."""

import errno
import importlib
import json
import re
import shlex
import shutil

import pytest
from typer.main import get_command

from scpslab.cli import app, shell
from scpslab.core import errors
from scpslab.core.project import ROOT

from scpslab.kinds.stacks.kernel.scenario import PRESETS
from scpslab.kinds.stacks.scps import scenario as scps

DOCS = ROOT / "docs" / "cli.md"
SMALL = (ROOT / "tests" / "data" / "small-scenario.yaml").read_text()
TEST = "fy97/fig04:kernel-test"
TWO = "place: found this; expected that. Do something.\nplace: found more; expected less. Do it."
SYSTEM = "error: runs/x: found Refused; expected the system to allow it. "
FULL = (
    "Free disk space there, or choose another folder with --out. Finished cells are kept; repeat the command to resume."
)
REFUSED = "Choose a folder in which you may write, or change its permissions."


def test_help_names_every_command_and_every_exit_code_of_the_page(scpslab):
    code, out, _ = scpslab("--help")
    assert code == 0
    assert [command for command in app.COMMANDS if f"\n  {command} " not in out] == []
    assert re.findall(r"^(\w+):$", out, re.MULTILINE) == ["Options", *app.GROUPS]
    assert max(map(len, out.splitlines())) <= 80
    documented = re.findall(r"^\| (\d+) \| .+? \|", DOCS.read_text(), re.MULTILINE)
    told = " ".join(out.split()).partition("Exit codes: ")[2]
    assert documented == re.findall(r"(?:^|; )(\d+) ", told) == ["0", "1", "2", "3", "4", "5", "130"]


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (errors.ScenarioError(TWO), 2, None),
        (errors.UsageError(TWO), 2, None),
        (errors.CapabilityError(TWO), 3, None),
        (errors.LabError(TWO), 4, None),
        (errors.ResultError(TWO), 5, None),
        (errors.ScpslabError(TWO), 1, None),
        (OSError(errno.ENOSPC, "Refused", "runs/x"), 4, f"{SYSTEM}{FULL}\n"),
        (OSError(errno.ENOTDIR, "Refused", "runs/x"), 4, f"{SYSTEM}Choose another path, or move what is there.\n"),
        (OSError(errno.EACCES, "Refused", "runs/x"), 4, f"{SYSTEM}{REFUSED}\n"),
        (OSError(errno.EIO, "Refused", "runs/x"), 4, f'{SYSTEM}Run "scpslab doctor" to check this machine.\n'),
    ],
)
def test_every_error_has_its_exit_code_and_a_line_for_each_fault(scpslab, monkeypatch, raised, code, said):
    def broken(_words):
        raise raised

    monkeypatch.setattr(app, "program", broken)
    assert scpslab("list") == (code, "", said or "".join(f"error: {line}\n" for line in TWO.splitlines()))


@pytest.mark.parametrize("command", app.COMMANDS)
def test_a_command_is_listed_as_its_own_help_says(command):
    made = app.program([command])
    (registered,) = (*made.registered_commands, *made.registered_groups)
    assert registered.name == command, "it alone is loaded"
    said = registered.callback.__doc__ if made.registered_commands else registered.typer_instance.info.help
    assert (said or "").splitlines()[0] == app.COMMANDS[command][1]


def words_of(example):
    """An example as a shell gives it to the program: without what stands behind a redirection."""
    words = shlex.split(example)
    return words[: words.index(">")] if ">" in words else words


@pytest.mark.parametrize("command", app.COMMANDS)
def test_every_help_ends_with_examples_that_the_program_takes(command):
    module = importlib.import_module(app.COMMANDS[command][0])
    function = getattr(module, f"{command}_", None) or getattr(module, command)
    for described in (function, *getattr(module, "SUBCOMMANDS", ())):
        examples = app.examples(described)
        assert examples, f"{described.__name__}: its help ends without an example"
        for example in examples:
            program, *words = words_of(example)
            assert program == "scpslab"
            assert words[0] == command
            # Every word is read, and nothing runs.
            context = get_command(app.program(words)).make_context("scpslab", list(words))
            while hasattr(context.command, "commands"):
                name, chosen, left = context.command.resolve_command(context, [*context._protected_args, *context.args])
                context = chosen.make_context(name, left)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["list", "docs", "new", "validate", "plan"])
def test_examples_that_need_no_lab_work(scpslab, tmp_path, monkeypatch, command):
    function = getattr(importlib.import_module(app.COMMANDS[command][0]), command + ("_" if command == "list" else ""))
    for example in app.examples(function):
        (folder := tmp_path / str(len(list(tmp_path.iterdir())))).mkdir()
        monkeypatch.chdir(folder)
        _, *words = words_of(example)
        code, out, err = scpslab(*words)
        assert (code, bool(out)) == (0, True), (example, err)
        # Not in the words of an earlier version.
        assert "today" not in err, example


@pytest.mark.parametrize("example", [example for example in app.examples(shell.shell) if "--" in example])
def test_networks_of_the_shell_s_examples_can_be_planned(monkeypatch, example):
    planned = []

    class Asked(Exception):
        pass

    def plan(topology, given, stacks, *rest, **named):
        planned.append(shell_plan(topology, given, stacks, *rest, **named))
        raise Asked

    shell_plan = shell.shell_plan
    monkeypatch.setattr(shell, "shell_plan", plan)
    words = words_of(example)[1:]
    with pytest.raises(Asked):
        get_command(app.program(words)).main(words, standalone_mode=False)
    assert planned[0].cell.shell == "mininet"


def test_examples_stand_in_lines_of_their_own(scpslab):
    code, out, _ = scpslab("list", "--help")
    assert code == 0
    assert "\n  Examples:\n    scpslab list\n    scpslab list topologies\n" in out


def test_a_command_without_its_module_is_an_error_and_not_left_out(monkeypatch):
    monkeypatch.setitem(app.COMMANDS, "plot", ("scpslab.cli.plott", "Draw."))
    with pytest.raises(ModuleNotFoundError, match="plott"):
        app.program(["plot"])


def test_the_version_is_that_of_the_project(scpslab):
    declared = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert scpslab("--version") == (0, f"scpslab {declared[1]}\n", "")


def test_validate_says_what_it_checked(scpslab):
    code, out, _ = scpslab("validate", TEST)
    assert code == 0
    assert out.startswith(f"{TEST}: ")
    assert out.endswith("all planned\n  transfer: ws1 → lan1 → r1 ─hop→ r2 → lan2 → ws2; back the same way\n")


def test_validate_plans_every_variant(scpslab, tmp_path, monkeypatch):
    (tmp_path / "wild.yaml").write_text(f"{SMALL}variants:\n  wild: {{sweep: {{ber: [3]}}}}\n")
    monkeypatch.chdir(tmp_path)
    for words, said in (
        (["wild.yaml"], "error: wild:wild: wild.yaml:17: sweep.ber=3: "),
        (["fy97/fig04", "--set", "sweep.stack=[bbr]"], "error: fy97/fig04:era: --set sweep.stack=[bbr]: found"),
    ):
        code, _, err = scpslab("validate", *words)
        assert (code, said in err) == (2, True), err


def test_validate_warns_of_a_sweep_that_changes_nothing(scpslab, tmp_path):
    idle = SMALL.replace("model: independent, ber: 1e-6", "model: none").replace("links.hop.*", "links.hop.forward")
    (path := tmp_path / "idle.yaml").write_text(idle)
    code, out, err = scpslab("validate", str(path))
    assert (code, out) == (0, "idle: Small: 6 cells, all planned\n  transfer: h1 ─hop→ h2; back the same way\n")
    assert err.startswith(f'warning: {path}:16: sweep: found one plan for "ber=0,r1", "ber=1e-06,r1", "ber=1e-05,r1"')


def test_resolved_scenario_is_yaml_with_defaults(scpslab):
    code, out, _ = scpslab("validate", TEST, "--resolved")
    assert code == 0
    assert "lan_rate: 10 Mbit/s" in out
    assert "variants" not in out


def test_plan_lists_cells_and_prints_one(scpslab):
    code, out, _ = scpslab("plan", TEST)
    first = out.splitlines()[0]
    assert (code, first) == (0, "stack=fy97-reno,errors=clustered,ber=0,r1")
    code, out, _ = scpslab("plan", TEST, "--cell", first)
    assert json.loads(out)["cell"]["id"] == first


def test_plan_draws_the_picture_of_the_documentation(scpslab):
    code, out, _ = scpslab("plan", "fy97/fig04:kernel-test", "--draw")
    assert (code, out) == (0, (ROOT / "docs/images/network.svg").read_text())


def test_course_draw_writes_the_drawing_into_the_folder(scpslab, tmp_path):
    own = tmp_path / "first-steps"
    shutil.copytree(ROOT / "assignments/first-steps", own)
    drawn = (own / "network.svg").read_text()
    (own / "network.svg").unlink()
    assert scpslab("course", "draw", str(own))[:2] == (0, f"{own / 'network.svg'}\n")
    assert (own / "network.svg").read_text() == drawn


@pytest.mark.slow
def test_list_shows_scenarios_topologies_and_presets(scpslab):
    code, out, _ = scpslab("list", "all")
    assert code == 0
    for word in ("fy97/fig04", ":kernel-demo", "point_to_point", "links.hop.forward", "2 Mbit/s", "fy97-reno"):
        assert word in out


def test_list_shows_the_presets_of_every_stack(scpslab):
    _, out, _ = scpslab("list", "presets")
    listed = {tuple(line.split()[:2]) for line in out.splitlines()[1:]}
    assert listed == {("kernel", name) for name in PRESETS} | {("scps", name) for name in scps.PRESETS}
