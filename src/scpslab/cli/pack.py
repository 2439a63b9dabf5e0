"""`scpslab pack`: packages that scenarios name, as layers over the guest image."""

from typing import Annotated

import typer

from scpslab import scenario
from scpslab.cli.tables import plain_console, say_to
from scpslab.core.errors import UsageError, harmless
from scpslab.plan.packs import EXPECTED, Pack, wanted
from scpslab.setup import packs


def pack() -> None:
    """Fetch packages that scenarios name, and list those that are here.

    Examples: scpslab pack build mine.yaml · scpslab pack list
    """


def build(words: Annotated[list[str], typer.Argument(metavar="SCENARIO|PACKAGE...")]) -> None:
    """Fetch packages and make them a layer for nodes, so that later runs need no network.

    A run does the same when it needs packages.

    Examples: scpslab pack build mine.yaml · scpslab pack build ngtcp2-client ngtcp2-server

    Options:
        words: A scenario that names packages, or packages themselves.
    """
    if len(words) == 1 and (words[0] in scenario.names() or words[0].endswith((".yaml", ".yml"))):
        named = {cell.model.packages for cell in scenario.cells(scenario.load(words[0]))} - {()}
        if not named:
            raise UsageError(f"{words[0]}: found no packages; expected the key packages. Add it, or run the scenario.")
    elif unknown := [word for word in words if wanted(word) is None]:
        raise UsageError(f'"{unknown[0]}": found no package; expected {EXPECTED}. Correct the word.')
    else:
        named = {tuple(words)}
    say = say_to(plain_console(stderr=True))
    for packages in sorted(named):
        layers = packs.ensure_layers(Pack(packages=tuple(sorted(set(packages)))), say)
        for layer in layers.values():
            for name, version in layer.versions.items():
                typer.echo(harmless(f"{name} {version}"))


def list_() -> None:
    """List the packs in the cache: their packages, versions and sizes.

    Examples: scpslab pack list
    """
    for packages, layer in packs.kept():
        typer.echo(harmless(f"{', '.join(packages)}: {layer.path.stat().st_size / 1e6:.1f} MB"))
        for name, version in layer.versions.items():
            typer.echo(harmless(f"  {name} {version}"))


SUBCOMMANDS = (build, list_)
