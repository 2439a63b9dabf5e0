"""`scpslab profile`: profiles of links from other tools' files, explained, drawn, and written for other tools."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from scpslab.core import units
from scpslab.core.choices import one_of
from scpslab.core.errors import ScenarioError, UsageError
from scpslab.core.problems import UnfitError
from scpslab.scenario.profiles import formats
from scpslab.scenario.profiles.format import Options, Pass
from scpslab.scenario.profiles.profile import Imported, Profile
from scpslab.scenario.profiles.words import drawn, explained

File = Annotated[Path, typer.Argument(metavar="FILE", help="File of a profile, or of another tool.")]
Named = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="NAME", help=f"Its format. Default: what its suffix says. {', '.join(formats.FORMATS)}."
    ),
]
Link = Annotated[
    str | None, typer.Option("--link", metavar="NAME", help="The direction, where the file has several, such as 1-2.")
]
Delays = Annotated[
    Path | None,
    typer.Option("--delays", metavar="FILE", help="mahimahi: file of delays, a line of whole ms for each 10 ms."),
]
Every = Annotated[
    str | None,
    typer.Option(
        "--every", metavar="TIME", help="Time between lines of --delays (10 ms), or between probes of ping (1 s)."
    ),
]
OneWay = Annotated[bool, typer.Option("--one-way", help="irtt: take the delays of each way from the two clocks.")]
Out = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Where to write. Default: standard output.")]


def profile() -> None:
    """Read, explain, draw and write profiles: what links do over time.

    A profile says rate, delay, bit errors, and up or down of a direction over time; a scenario names its file
    (scpslab docs profiles).

    Examples: scpslab profile show contacts.ionrc · scpslab profile import contacts.ionrc --link 1-2 --out pass.csv
    """


def import_(
    file: File,
    format_: Named = None,
    link: Link = None,
    delays: Delays = None,
    every: Every = None,
    one_way: OneWay = False,
    station: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LAT,LON,M",
            help="Orbits: a ground station, degrees and metres; two: by satellite from one to the other.",
        ),
    ] = None,
    start: Annotated[
        str | None, typer.Option(metavar="UTC", help="Orbits: when 0 s is, such as 2026-11-29T20:00:00.")
    ] = None,
    lasts: Annotated[str, typer.Option(metavar="TIME", help="Orbits: for how long.")] = "600 s",
    step: Annotated[str, typer.Option(metavar="TIME", help="Orbits: time between two delays.")] = "100 ms",
    least_elevation: Annotated[
        float, typer.Option(metavar="DEGREES", help="Orbits: what is lower is not seen.")
    ] = 25.0,
    hand_over: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Orbits: so often the highest satellite takes over. Default: whenever one is higher."
        ),
    ] = None,
    by_elevation: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Orbits: table of elevation_deg, rate_bit_s and ber; a row holds from its elevation upwards.",
        ),
    ] = None,
    out: Out = None,
) -> None:
    """Make a profile (CSV) from a file of another tool, for a scenario.

    Examples: scpslab profile import bw.trace --delays delay.txt --out leo.csv · scpslab profile import plan.ionrc
    --link 1-2 --out pass.csv
    """
    orbit = _pass(station or [], start, (lasts, step, hand_over), least_elevation, by_elevation)
    found = _read(file, format_, replace(_options(delays, every, one_way=one_way), orbit=orbit))
    for note in found.notes:
        typer.echo(f"note: {note}", err=True)
    _write(formats.FORMATS["csv"].write(_one(found, link, file), Options()), out)


def show(
    file: File,
    format_: Named = None,
    link: Link = None,
    delays: Delays = None,
    every: Every = None,
    one_way: OneWay = False,
) -> None:
    """Explain a file in words: what the format means, and what this file says.

    Examples: scpslab profile show pass.csv · scpslab profile show bw.trace --delays delay.txt
    """
    kind = formats.format_of(file, format_)
    found = _read(file, format_, _options(delays, every, one_way=one_way))
    typer.echo(f"{file.name}: {kind.says}.")
    for note in found.notes:
        typer.echo(note)
    chosen = found.profiles if link is None else {link: _one(found, link, file)}
    for name, one in chosen.items():
        typer.echo(f"{name}:" if len(found.profiles) > 1 else "This file:")
        for line in explained(one):
            typer.echo(f"  {line}")


def plot(
    file: File,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The drawing, .svg, .png or .pdf.")],
    format_: Named = None,
    link: Link = None,
    delays: Delays = None,
    every: Every = None,
    one_way: OneWay = False,
) -> None:
    """Draw a profile over time.

    Examples: scpslab profile plot pass.csv --out pass.svg
    """
    if out.suffix not in (".svg", ".png", ".pdf"):
        raise UsageError(f'--out: found "{out.name}"; expected a name that ends in .svg, .png or .pdf. Correct it.')
    found = _read(file, format_, _options(delays, every, one_way=one_way))
    drawn(_one(found, link, file), file.name).savefig(out, metadata={"Date": None} if out.suffix == ".svg" else None)


def export(
    file: File,
    to: Annotated[str, typer.Option("--to", metavar="NAME", help="The format to write: csv, hdtn, ion or mahimahi.")],
    nodes: Annotated[
        str, typer.Option("--nodes", metavar="A-B", help="Numbers of the two nodes of a contact plan.")
    ] = "1-2",
    format_: Named = None,
    link: Link = None,
    out: Out = None,
) -> None:
    """Write a profile for another tool.

    Examples: scpslab profile export pass.csv --to ion --nodes 1-2
    """
    first, dash, second = nodes.partition("-")
    if not dash or not (first + second).isascii() or not first.isdecimal() or not second.isdecimal():
        raise UsageError(f'--nodes: found "{nodes}"; expected two numbers such as 1-2. Correct it.')
    if to not in formats.FORMATS:
        raise UsageError(f'--to: found "{to}"; {one_of(to, formats.FORMATS)}')
    given = _one(_read(file, format_, Options()), link, file)
    try:
        _write(formats.FORMATS[to].write(given, Options(nodes=(int(first), int(second)))), out)
    except UnfitError as error:
        raise ScenarioError(f"{file}: {error}") from error


SUBCOMMANDS = (import_, show, plot, export)


def _options(delays: Path | None, every: str | None, *, one_way: bool) -> Options:
    plain = Options()
    try:
        every_ns = units.parse("duration", every) if every is not None else None
    except UnfitError as error:
        raise UsageError(f"--every: {error}") from error
    if every_ns == 0:
        raise UsageError('--every: found "0"; expected a time above 0. Correct it.')
    return Options(
        delays=(delays.name, formats.content(delays)) if delays is not None else None,
        delay_every_ns=every_ns or plain.delay_every_ns,
        probe_every_ns=every_ns or plain.probe_every_ns,
        one_way=one_way,
    )


def _pass(
    stations: list[str], start: str | None, times: tuple[str, str, str | None], least: float, table: Path | None
) -> Pass | None:
    """Who looks at satellites; None where nobody is said to."""
    if not stations:
        return None
    places = [_place(one) for one in stations]
    try:
        begins = datetime.fromisoformat(start or "")
        lasts, step, hand_over = (units.parse("duration", time) if time else 0 for time in times)
        rows = formats.by_elevation(formats.content(table), table.name) if table is not None else ()
    except UnfitError as error:
        raise UsageError(f"orbits: {error}") from error
    except ValueError as error:
        raise UsageError(
            f'--start: found "{start or ""}"; expected a time such as 2026-11-29T20:00:00. Correct it.'
        ) from error
    if not 1 <= len(places) <= 2 or not lasts or not step or not -90 <= least <= 90:
        raise UsageError(
            "orbits: found other numbers; expected one or two stations, times above 0 and -90 to 90 degrees. "
            "Correct them."
        )
    begins = begins.replace(tzinfo=UTC) if begins.tzinfo is None else begins.astimezone(UTC)
    return Pass(tuple(places), begins, lasts, step, least, hand_over, rows)


def _place(text: str) -> tuple[float, float, float]:
    try:
        latitude, longitude, metres = (float(word) for word in text.split(","))
    except ValueError as error:
        raise UsageError(
            f'--station: found "{text}"; expected LAT,LON,METRES such as 48.1,11.6,520. Correct it.'
        ) from error
    if not (-90 <= latitude <= 90 and -360 <= longitude <= 360 and -1000 <= metres <= 10**6):
        raise UsageError(f'--station: found "{text}"; expected degrees, and metres above the ellipsoid. Correct it.')
    return latitude, longitude, metres


def _read(file: Path, format_: str | None, options: Options) -> Imported:
    return formats.read(file, format_, options)


def _one(found: Imported, link: str | None, file: Path) -> Profile:
    """The direction that is meant."""
    if link is None and len(found.profiles) == 1:
        return next(iter(found.profiles.values()))
    if link is None:
        known = ", ".join(found.profiles)
        raise UsageError(
            f"{file}: found {len(found.profiles)} directions; expected --link with one of {known}. Add it."
        )
    if link not in found.profiles:
        raise UsageError(f'--link: found "{link}"; {one_of(link, found.profiles)}')
    return found.profiles[link]


def _write(text: str, out: Path | None) -> None:
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
