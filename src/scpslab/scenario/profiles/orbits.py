"""Orbits: two-line elements (TLE) or mean-elements messages (OMM, JSON) with ground stations, by SGP4.

The geometry is our own: SGP4's TEME is turned by Greenwich's mean sidereal time (IAU 1982, UT1 taken for UTC, poles
that do not move), and stations are on the ellipsoid of WGS 84. A delay is the range of the moment over the speed of
light, summed over two stations where a satellite relays. Rates and bit errors are the user's, by elevation.
"""

from __future__ import annotations

import csv
import io
import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from scpslab.core import strict_json
from scpslab.core.errors import CapabilityError
from scpslab.core.installation import add_extra
from scpslab.core.names import shown
from scpslab.core.problems import UnfitError
from scpslab.scenario.profiles.format import Format, Options, Pass, json_value
from scpslab.scenario.profiles.profile import BOUNDS, NUMBER, SECOND_NS, Imported, Profile, collapsed, decoded, number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LIGHT_KM_S = 299_792.458
# WGS 84 (NIMA TR8350.2): semi-major axis, and the square of the eccentricity.
EARTH_KM, FLATTENING = 6378.137, 1 / 298.257223563
ECCENTRICITY_2 = FLATTENING * (2 - FLATTENING)
JULIAN_2000, DAY_S = 2_451_545.0, 86_400
MOST_SAMPLES = 1 << 24
BY_ELEVATION = ("elevation_deg", "rate_bit_s", "ber")


class Tle(Format):
    """A direction between two stations by satellite, or between one and the satellite."""

    name, suffixes = "tle", (".tle", ".omm")
    says = "orbits: with --station and --start, when a satellite is seen, how far it is, and when another takes over"

    def read(self, data: bytes, name: str, options: Options) -> Imported:
        """The pass; the least elevation counts at every station.

        Raises:
            CapabilityError: sgp4 is not installed.
        """
        if options.orbit is None:
            raise UnfitError("no station", "--station LAT,LON,METRES, --start and --lasts", "Say who looks.", name)
        try:
            from sgp4.api import WGS72, Satrec, SatrecArray  # noqa: PLC0415  # an extra
            from sgp4.omm import initialize  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise CapabilityError(
                f'profile: found no Python package sgp4; expected it with the extra "orbits" of scpslab. Run: '
                f"{add_extra('orbits')}."
            ) from error
        satellites, names = [], []
        if decoded(data, name).lstrip().startswith(("[", "{")):
            for fields in _messages(data, name):
                satellite = Satrec()
                try:
                    initialize(satellite, {key: str(value) for key, value in fields.items()}, WGS72)
                except (KeyError, ValueError) as error:
                    found = f"a message without a usable {str(error)[:40]}"
                    raise UnfitError(found, "the keys of an OMM (CCSDS 502.0-B)", "Correct it.", name) from error
                satellites.append(satellite)
                names.append(str(fields.get("OBJECT_NAME", satellite.satnum))[:40])
        else:
            for title, first, second in _elements(decoded(data, name), name):
                satellites.append(Satrec.twoline2rv(first, second))
                names.append(title)
        return _seen(SatrecArray(satellites), names, options.orbit)


def _messages(data: bytes, name: str) -> list[strict_json.JsonObject]:
    value = json_value(data, name)
    found = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)]
    if not found:
        raise UnfitError("no message", "a list of OMMs", "Choose another file.", name)
    return found


def _elements(text: str, name: str) -> list[tuple[str, str, str]]:
    """Titles and pairs of lines whose checksums are right."""
    found, title, lines = [], "", text.splitlines()
    for at, line in enumerate(lines, 1):
        if line.startswith("1 ") and at < len(lines) and lines[at].startswith("2 "):
            pair = line.rstrip(), lines[at].rstrip()
            for number, one in enumerate(pair, at):
                total = sum(int(letter) if letter.isdecimal() else letter == "-" for letter in one[:68])
                if len(one) != 69 or not one.isascii() or str(total % 10) != one[68]:
                    raise UnfitError(shown(one), "69 characters and their checksum", "Correct it.", f"{name}:{number}")
            found.append((title or line[2:7].strip(), *pair))
        elif not line.startswith(("1 ", "2 ")):
            title = line.strip().removeprefix("0 ")[:40]
    if not found:
        raise UnfitError("no two-line elements", "a line 1 and a line 2", "Choose another file.", name)
    return found


def sidereal(julian: Floats) -> Floats:
    """Greenwich's mean sidereal time in radians (IAU 1982), of UT1."""
    centuries = (julian - JULIAN_2000) / 36_525
    seconds = 67_310.54841 + (876_600 * 3600 + 8_640_184.812866) * centuries
    seconds += 0.093104 * centuries**2 - 6.2e-6 * centuries**3
    return seconds % DAY_S * (2 * math.pi / DAY_S)


def station_km(latitude: float, longitude: float, metres: float) -> tuple[Any, Any]:
    """A station's place in the turning frame (km), and the direction to its zenith."""
    import numpy as np  # noqa: PLC0415

    lat, lon = math.radians(latitude), math.radians(longitude)
    up = np.array([math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)])
    radius = EARTH_KM / math.sqrt(1 - ECCENTRICITY_2 * math.sin(lat) ** 2)
    height = metres / 1000
    return up * np.array([radius + height, radius + height, radius * (1 - ECCENTRICITY_2) + height]), up


def looks(
    satellites: Any, start: datetime, times_s: Floats, station: tuple[float, float, float]
) -> tuple[Floats, Floats]:
    """Elevation (degrees) and range (km) of satellites from a station: arrays of satellites by times. NaN: an orbit
    that SGP4 gives up.
    """
    import numpy as np  # noqa: PLC0415

    whole = (start - datetime(2000, 1, 1, 12, tzinfo=UTC)) / timedelta(days=1)
    days, part = math.floor(whole), whole - math.floor(whole) + times_s / DAY_S
    julian = np.full_like(times_s, JULIAN_2000 + days)
    failed, teme, _ = satellites.sgp4(julian, part)
    teme[failed != 0] = np.nan
    angle = sidereal(julian + part)
    cos, sin = np.cos(angle), np.sin(angle)
    fixed = np.stack(
        [cos * teme[..., 0] + sin * teme[..., 1], cos * teme[..., 1] - sin * teme[..., 0], teme[..., 2]], -1
    )
    place, up = station_km(*station)
    ray = fixed - place
    ranges = np.sqrt((ray**2).sum(-1))
    return np.degrees(np.arcsin(ray @ up / ranges)), ranges


def _seen(satellites: Any, names: list[str], orbit: Pass) -> Imported:
    import numpy as np  # noqa: PLC0415

    count = -(-orbit.lasts_ns // orbit.step_ns) + 1
    if count * len(names) > MOST_SAMPLES:
        found = f"{len(names)} satellites at {count} times"
        raise UnfitError(found, f"at most {MOST_SAMPLES} together", "Shorten the time, or lengthen the step.")
    times_ns = np.arange(count, dtype=np.int64) * orbit.step_ns
    seen = [looks(satellites, orbit.start, times_ns / SECOND_NS, station) for station in orbit.stations]
    elevation, ranges = np.min([one for one, _ in seen], axis=0), np.sum([one for _, one in seen], axis=0)
    elevation = np.where(np.isnan(elevation), -90.0, elevation)
    best = elevation.argmax(axis=0)
    if orbit.hand_over_ns:
        # Who is best when a slot begins keeps it.
        best = best[np.searchsorted(times_ns, times_ns // orbit.hand_over_ns * orbit.hand_over_ns)]
    at = np.arange(count)
    chosen, is_up = elevation[best, at], elevation[best, at] >= orbit.least_deg
    if not is_up.any():
        raise UnfitError(
            "no satellite above the least elevation", "a pass", "Choose another start, or a lower elevation."
        )
    if orbit.by_elevation and chosen[is_up].min() < orbit.by_elevation[0][0]:
        found = f"a satellite at {chosen[is_up].min():.1f} degrees, below the first row of --by-elevation"
        raise UnfitError(found, f"a row for {orbit.least_deg:g} degrees", "Add it, or raise --least-elevation.")
    delay_ns = np.rint(ranges[best, at] / LIGHT_KM_S * SECOND_NS).astype(np.int64)
    delays, last = [], -1
    for when in at[is_up].tolist():
        if last >= 0 and best[when] != best[last]:
            # The one before until a nanosecond ago, so that no line leads from one to the other.
            before = ranges[best[last], when] / LIGHT_KM_S * SECOND_NS
            delays.append(
                (int(times_ns[when]) - 1, round(before))
                if last == when - 1
                else (int(times_ns[last]), int(delay_ns[last]))
            )
        delays.append((int(times_ns[when]), int(delay_ns[when])))
        last = when
    rows = [next((row for row in reversed(orbit.by_elevation) if row[0] <= one), None) for one in chosen]
    pairs = list(zip(times_ns.tolist(), rows, is_up.tolist(), strict=True))
    profile = Profile(
        rate_bps=collapsed((t_ns, row[1]) for t_ns, row, sees in pairs if sees and row),
        delay_ns=tuple(dict(delays).items()),
        ber=collapsed((t_ns, row[2]) for t_ns, row, sees in pairs if sees and row),
        up=collapsed(zip(times_ns.tolist(), is_up.tolist(), strict=True)),
    )
    overs = int((np.diff(best) != 0).sum())
    highest = f"elevation at most {chosen.max():.1f} degrees"
    notes = (
        f"{len({*best[is_up].tolist()})} of {len(names)} satellites are used, with {overs} hand-overs; {highest}.",
        'Delays are meant for "delay: linear" in the scenario.',
    )
    return Imported({"forward": profile}, notes)


def by_elevation(data: bytes, name: str) -> tuple[tuple[float, int, float], ...]:
    """The user's table: elevation_deg, rate_bit_s, ber; each row holds from its elevation upwards.

    Raises:
        UnfitError: it is none.
    """
    reader = csv.DictReader(io.StringIO(decoded(data, name)), restval="")
    expected = "the columns elevation_deg (ascending), rate_bit_s and ber, with numbers"
    found: list[tuple[float, int, float]] = []
    for row in reader:
        subject, cells = f"{name}:{reader.line_num}", [(row.get(key) or "").strip() for key in BY_ELEVATION]
        cells[2] = cells[2] or "0"
        if any(NUMBER.fullmatch(cell) is None for cell in cells):
            raise UnfitError(shown(", ".join(cells)), expected, "Correct the line.", subject)
        found.append((float(cells[0]), number(cells[1], "rate_bit_s", subject), float(cells[2])))
    is_within = all(
        -90 <= deg <= 90 and 0 <= bps <= BOUNDS["rate_bps"] and 0 <= ber <= BOUNDS["ber"] for deg, bps, ber in found
    )
    if not found or not is_within or sorted(found) != found:
        raise UnfitError("rows out of order or out of bounds", expected, "Correct it.", name)
    return tuple(found)
