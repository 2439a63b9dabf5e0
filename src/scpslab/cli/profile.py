"""`scpslab profile`: profiles of links from other tools' files, explained, drawn, and written for other tools.

Options:
    file: File of a profile, or of another tool.
    format: Its format. Default: what its suffix says.
    link: The direction, where the file has several, such as 1-2.
    delays: mahimahi: file of delays, a line of whole ms for each 10 ms.
    every: Time between lines of --delays (10 ms), or between probes of ping (1 s).
    one_way: irtt: take the delays of each way from the two clocks.
    out: Where to write. Default: standard output.
"""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from scpslab.cli.options import texts
from scpslab.core import units
from scpslab.core.choices import one_of
from scpslab.core.errors import ScenarioError, UsageError
from scpslab.core.problems import UnfitError
from scpslab.scenario.profiles import formats
from scpslab.scenario.profiles.format import COLUMNS, Options, Pass
from scpslab.scenario.profiles.profile import Imported, Profile, seconds
from scpslab.scenario.profiles.words import drawn, explained

SAID = texts(__doc__)
File = Annotated[Path, typer.Argument(metavar="FILE", help=SAID["file"])]
Named = Annotated[
    str | None, typer.Option("--format", metavar="NAME", help=f"{SAID['format']} {', '.join(formats.FORMATS)}.")
]
Link = Annotated[str | None, typer.Option("--link", metavar="NAME", help=SAID["link"])]
Delays = Annotated[Path | None, typer.Option("--delays", metavar="FILE", help=SAID["delays"])]
Every = Annotated[str | None, typer.Option("--every", metavar="TIME", help=SAID["every"])]
OneWay = Annotated[bool, typer.Option("--one-way", help=SAID["one_way"])]
Out = Annotated[Path | None, typer.Option("--out", metavar="FILE", help=SAID["out"])]


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
    station: Annotated[list[str] | None, typer.Option(metavar="LAT,LON,M")] = None,
    start: Annotated[str | None, typer.Option(metavar="UTC")] = None,
    lasts: Annotated[str, typer.Option(metavar="TIME")] = "600 s",
    step: Annotated[str, typer.Option(metavar="TIME")] = "100 ms",
    least_elevation: Annotated[float, typer.Option(metavar="DEGREES")] = 25.0,
    hand_over: Annotated[str | None, typer.Option(metavar="TIME")] = None,
    by_elevation: Annotated[Path | None, typer.Option(metavar="FILE")] = None,
    out: Out = None,
) -> None:
    """Make a profile (CSV) from a file of another tool, for a scenario.

    Examples: scpslab profile import bw.trace --delays delay.txt --out leo.csv · scpslab profile import plan.ionrc
    --link 1-2 --out pass.csv

    Options:
        station: Orbits: a ground station, degrees and metres; two: by satellite from one to the other.
        start: Orbits: when 0 s is, such as 2026-11-29T20:00:00.
        lasts: Orbits: for how long.
        step: Orbits: time between two delays.
        least_elevation: Orbits: what is lower is not seen.
        hand_over: Orbits: so often the highest satellite takes over. Default: whenever one is higher.
        by_elevation: Orbits: table of elevation_deg, rate_bit_s and ber; a row holds from its elevation upwards.
    """
    orbit = _pass(station or [], start, (lasts, step, hand_over), least_elevation, by_elevation)
    found = formats.read(file, format_, replace(_options(delays, every, one_way=one_way), orbit=orbit))
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
    found = formats.read(file, format_, _options(delays, every, one_way=one_way))
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
    out: Annotated[Path, typer.Option("--out", metavar="FILE")],
    format_: Named = None,
    link: Link = None,
    delays: Delays = None,
    every: Every = None,
    one_way: OneWay = False,
) -> None:
    """Draw a profile over time.

    Examples: scpslab profile plot pass.csv --out pass.svg

    Options:
        out: The drawing, .svg, .png or .pdf.
    """
    if out.suffix not in (".svg", ".png", ".pdf"):
        raise UsageError(f'--out: found "{out.name}"; expected a name that ends in .svg, .png or .pdf. Correct it.')
    found = formats.read(file, format_, _options(delays, every, one_way=one_way))
    drawn(_one(found, link, file), file.name).savefig(out, metadata={"Date": None} if out.suffix == ".svg" else None)


def export(
    file: File,
    to: Annotated[str, typer.Option("--to", metavar="NAME")],
    nodes: Annotated[str, typer.Option("--nodes", metavar="A-B")] = "1-2",
    without: Annotated[list[str] | None, typer.Option("--without", metavar="COLUMN")] = None,
    format_: Named = None,
    link: Link = None,
    out: Out = None,
) -> None:
    """Write a profile for another tool; what its format cannot hold is refused.

    Examples: scpslab profile export pass.csv --to ion --nodes 1-2

    Options:
        to: The format to write: csv, hdtn, ion or mahimahi.
        nodes: Numbers of the two nodes of a contact plan.
        without: Column of the table to leave out, such as ber; may be repeated.
    """
    first, dash, second = nodes.partition("-")
    if not dash or not (first + second).isascii() or not first.isdecimal() or not second.isdecimal():
        raise UsageError(f'--nodes: found "{nodes}"; expected two numbers such as 1-2. Correct it.')
    if to not in formats.FORMATS:
        raise UsageError(f'--to: found "{to}"; {one_of(to, formats.FORMATS)}')
    if wrong := next((one for one in without or () if one not in COLUMNS), None):
        raise UsageError(f'--without: found "{wrong}"; {one_of(wrong, COLUMNS)}')
    given = _one(formats.read(file, format_, Options()), link, file)
    try:
        given = replace(given, **{COLUMNS[one][0]: () for one in without or ()})  # type: ignore[arg-type]  # columns
        text = formats.FORMATS[to].write(given, Options(nodes=(int(first), int(second))))
        back = next(iter(formats.FORMATS[to].read(text.encode(), to, Options()).profiles.values()))
    except UnfitError as error:
        raise ScenarioError(f"{file}: {error}") from error
    times = {t_ns for name in ("delay_ns", "up") for t_ns, _ in given.columns[name]}
    ups = [t_ns for t_ns in times if given.at("up", t_ns) in (None, True)]
    pairs = [[one.at("delay_ns", t_ns) or 0 for one in (given, back)] for t_ns in ups]
    if off_ns := int(max((abs(one - other) for one, other in pairs), default=0)):
        typer.echo(f"note: delays are whole seconds in {to}: at most {seconds(off_ns)} s from the profile's.", err=True)
    _write(text, out)


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
        expected = "expected one or two stations, times above 0 and -90 to 90 degrees. Correct them."
        raise UsageError(f"orbits: found other numbers; {expected}")
    begins = begins.replace(tzinfo=UTC) if begins.tzinfo is None else begins.astimezone(UTC)
    return Pass(tuple(places), begins, lasts, step, least, hand_over, rows)


def _place(text: str) -> tuple[float, float, float]:
    try:
        latitude, longitude, metres = (float(word) for word in text.split(","))
    except ValueError as error:
        expected = "expected LAT,LON,METRES such as 48.1,11.6,520. Correct it."
        raise UsageError(f'--station: found "{text}"; {expected}') from error
    if not (-90 <= latitude <= 90 and -360 <= longitude <= 360 and -1000 <= metres <= 10**6):
        raise UsageError(f'--station: found "{text}"; expected degrees, and metres above the ellipsoid. Correct it.')
    return latitude, longitude, metres


def _one(found: Imported, link: str | None, file: Path) -> Profile:
    """The direction that is meant."""
    if link is None and len(found.profiles) == 1:
        return next(iter(found.profiles.values()))
    if link is None:
        known = ", ".join(found.profiles)
        expected = f"expected --link with one of {known}. Add it."
        raise UsageError(f"{file}: found {len(found.profiles)} directions; {expected}")
    if link not in found.profiles:
        raise UsageError(f'--link: found "{link}"; {one_of(link, found.profiles)}')
    return found.profiles[link]


def _write(text: str, out: Path | None) -> None:
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
