"""The tables of commands in docs/cli.md, from what --help says."""

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from scpslab.cli.app import GROUPS, program


def command_tables() -> str:
    """A table for each group: commands with their arguments, what they do, and their options."""
    lines: list[str] = []
    for group, commands in GROUPS.items():
        lines += [f"## {group}", "", "| command | does | options |", "|---|---|---|"]
        for name in commands:
            lines += _rows(f"scpslab {name}", get_command(program([name])).commands[name])  # type: ignore[attr-defined]
        lines.append("")
    return "\n".join(lines)


def _rows(typed: str, command: Any) -> Iterator[str]:
    for name, subcommand in getattr(command, "commands", {}).items():
        yield from _rows(f"{typed} {name}", subcommand)
    if hasattr(command, "commands"):
        return
    of = [(one.metavar, one.required) for one in command.params if one.param_type_name == "argument"]
    arguments = [name if required or name.startswith("[") else f"[{name}]" for name, required in of]
    options = [
        "/".join(f"`{option}`" for option in (*one.opts, *one.secondary_opts))
        for one in command.params
        if one.param_type_name == "option"
    ]
    does = command.help.partition("\n\n")[0].replace("\n", " ")
    yield f"| `{' '.join([typed, *arguments])}` | {does} | {', '.join(options)} |"
