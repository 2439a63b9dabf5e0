"""Orbits: our geometry against skyfield's, and passes as profiles."""

from datetime import UTC, datetime

import numpy as np
import pytest
from sgp4.api import Satrec, SatrecArray
from skyfield.api import EarthSatellite, load, wgs84

from scpslab.core.problems import UnfitError
from scpslab.scenario.profiles.format import Options, Pass
from scpslab.scenario.profiles.formats import FORMATS, by_elevation
from scpslab.scenario.profiles.orbits import looks, station_km

FIRST = "1 25544U 98067A   24127.82853009  .00015698  00000+0  27310-3 0  9995"
SECOND = "2 25544  51.6393 160.4574 0003580 140.6673 205.7250 15.50957674452123"
START = datetime(2024, 5, 7, 12, tzinfo=UTC)
STATION = (48.1, 11.6, 520.0)
S = 10**9


def tle(*words):
    return "\n".join(words).encode()


@pytest.mark.parametrize("place", [STATION, (-33.9, 151.2, 20.0), (89.0, 0.0, 0.0), (0.0, -78.5, 2850.0)])
def test_ranges_and_elevations_are_those_of_skyfield(place):
    """A day: ranges to 30 m (0.1 µs; skyfield knows UT1, which differs by some milliseconds), elevations to 0.01 degrees."""
    times = np.arange(0, 86_400, 30.0)
    elevation, ranges = looks(SatrecArray([Satrec.twoline2rv(FIRST, SECOND)]), START, times, place)
    scale = load.timescale(builtin=True)
    satellite, station = EarthSatellite(FIRST, SECOND, "", scale), wgs84.latlon(*place)
    altitude, _, distance = (satellite - station).at(scale.utc(2024, 5, 7, 12, 0, times)).altaz()

    assert np.abs(distance.km - ranges[0]).max() < 0.03
    assert np.abs(altitude.degrees - elevation[0]).max() < 0.01


def test_stations_are_on_the_ellipsoid():
    """WGS 84: 6378.137 km at the equator, 6356.752 km at the poles."""
    assert np.allclose(station_km(0, 90, 0)[0], [0, 6378.137, 0])
    assert np.allclose(station_km(-90, 0, 1000)[0], [0, 0, -6357.752314], atol=1e-6)


def test_a_pass_is_up_between_two_times():
    """Above 25 degrees: delays between those of the orbit's height and of the horizon's distance, in a valley."""
    orbit = Pass((STATION,), START, 86_400 * S, S, 25.0, by_elevation=((0.0, 2_000_000, 1e-6), (45.0, 8_000_000, 1e-7)))
    found = FORMATS["tle"].read(tle("ISS", FIRST, SECOND), "a.tle", Options(orbit=orbit))
    profile = found.profiles["forward"]

    assert [is_up for _, is_up in profile.up][:3] == [False, True, False]
    assert {bps for _, bps in profile.rate_bps} <= {2_000_000, 8_000_000}
    delays = np.array([delay for _, delay in profile.delay_ns]) / 1e6
    assert 410 / 299.792458 < delays.min() < delays.max() < 1000 / 299.792458
    assert "1 of 1 satellites" in found.notes[0]


def two(shift):
    """A second satellite some degrees ahead in the same orbit."""
    line = f"{SECOND[:43]}{205.7250 + shift:8.4f}{SECOND[51:68]}"
    return line + str(sum(int(one) if one.isdecimal() else one == "-" for one in line) % 10)


def test_hand_overs_are_jumps():
    """Of two satellites the higher one serves; with a time between hand-overs it stays until that is over."""
    text = tle("A", FIRST, SECOND, "B", FIRST, two(4))
    free, slotted = (
        FORMATS["tle"]
        .read(text, "a.tle", Options(orbit=Pass((STATION,), START, 86_400 * S, S, 10.0, every)))
        .profiles["forward"]
        for every in (0, 15 * S)
    )
    jumps = [
        late
        for (early, one), (late, other) in zip(slotted.delay_ns, slotted.delay_ns[1:], strict=False)
        if late - early == 1
    ]

    assert jumps
    assert all(t_ns % (15 * S) == 0 for t_ns in jumps)
    assert sum(late - early == 1 for (early, _), (late, _) in zip(free.delay_ns, free.delay_ns[1:], strict=False))


def test_two_stations_add_their_ranges():
    orbit = Pass((STATION, STATION), START, 86_400 * S, 10 * S)
    alone = FORMATS["tle"].read(tle(FIRST, SECOND), "a", Options(orbit=Pass((STATION,), START, 86_400 * S, 10 * S)))
    both = FORMATS["tle"].read(tle(FIRST, SECOND), "a", Options(orbit=orbit)).profiles["forward"]

    pairs = zip(alone.profiles["forward"].delay_ns, both.delay_ns, strict=True)
    assert all(abs(2 * one - other) <= 1 for (_, one), (_, other) in pairs)


def test_messages_of_mean_elements():
    """An OMM in JSON gives what its two lines give."""
    message = (
        '[{"OBJECT_NAME": "ISS", "OBJECT_ID": "1998-067A", "EPOCH": "2024-05-06T19:53:04.999776", '
        '"MEAN_MOTION": 15.50957674, "ECCENTRICITY": 0.000358, "INCLINATION": 51.6393, "RA_OF_ASC_NODE": 160.4574, '
        '"ARG_OF_PERICENTER": 140.6673, "MEAN_ANOMALY": 205.725, "EPHEMERIS_TYPE": 0, "CLASSIFICATION_TYPE": "U", '
        '"NORAD_CAT_ID": 25544, "ELEMENT_SET_NO": 999, "REV_AT_EPOCH": 45212, "BSTAR": 0.0002731, '
        '"MEAN_MOTION_DOT": 0.00015698, "MEAN_MOTION_DDOT": 0}]'
    )
    orbit = Options(orbit=Pass((STATION,), START, 86_400 * S, 10 * S))
    first, second = (
        FORMATS["tle"].read(data, "a", orbit).profiles["forward"] for data in (message.encode(), tle(FIRST, SECOND))
    )

    assert first.up == second.up
    assert all(abs(one[1] - other[1]) < 100 for one, other in zip(first.delay_ns, second.delay_ns, strict=True))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (tle(FIRST[:-1] + "0", SECOND), "checksum"),
        (tle(FIRST), "no two-line elements"),
        (b"[{}]", "usable"),
        (b"[]", "no message"),
        (tle(FIRST, SECOND), "no satellite above"),
    ],
)
def test_what_is_no_orbit(data, said):
    with pytest.raises(UnfitError, match=said):
        FORMATS["tle"].read(data, "a", Options(orbit=Pass((STATION,), START, S, S, 89.9)))


def test_tables_over_elevation():
    assert by_elevation(b"elevation_deg,rate_bit_s,ber\n10,1000,1e-5\n30,2000,\n", "t") == (
        (10.0, 1000, 1e-5),
        (30.0, 2000, 0.0),
    )
    for text in (
        b"",
        b"elevation_deg,rate_bit_s,ber\n30,1,0\n10,1,0\n",
        b"elevation_deg,rate_bit_s,ber\nx,1,0\n",
        b"a,b\n1,2\n",
    ):
        with pytest.raises(UnfitError):
            by_elevation(text, "t")
    for cells in (b"10,1_000,0", b"10,1.5,0", b"1_0,1,0", b"10,1,1_0e-7", b"10"):
        with pytest.raises(UnfitError, match="^t:3: found "):
            by_elevation(b"elevation_deg,rate_bit_s,ber\n5,8,0\n" + cells + b"\n", "t")


def test_every_elevation_that_is_seen_needs_a_row():
    """Without one, the last row of a setting satellite would hold below its own elevation."""
    orbit = Pass((STATION,), START, 86_400 * S, S, 10.0, by_elevation=((25.0, 2_000_000, 1e-6),))
    with pytest.raises(UnfitError, match=r"at 10\.\d degrees, below the first row .*expected a row for 10 degrees"):
        FORMATS["tle"].read(tle("ISS", FIRST, SECOND), "a.tle", Options(orbit=orbit))
