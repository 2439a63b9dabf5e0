"""What students write is read with units and intervals or refused with a reason; shares of points by distance, mistake
and calibration.
"""

import math
import re

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from scpslab_course.course import model
from scpslab_course.course.answers import (
    GivenError,
    Mistake,
    NearEnough,
    RightNumber,
    RightWord,
    interval,
    number,
    read_predicted,
    score_answer,
    score_prediction,
)
from tests.cases import each, refusal

ASKED = model.NumberAnswer(kind="number", question="How much?", unit="kB")
RIGHT = RightNumber(
    kind="number",
    value=100,
    distance=2,
    partial=(NearEnough(distance=6, share=0.7, comment="nearly"), NearEnough(distance=20, share=0.2, comment="far")),
    wrong=(Mistake(value=50, share=0.3, comment="one way"), Mistake(value=105, share=0.9, comment="with headers")),
)
TIME = model.NumberPrediction(kind="number", question="How long?", unit="s")
BOUNDS = model.IntervalPrediction(kind="interval", question="Between?", unit="kbit/s")
RATIO = model.LogRatio(kind="log-ratio", truth="1 + 1", full=1.25, zero=4)
CALIBRATED = model.Interval(kind="interval", truth="1 + 1", full=2, zero=8)


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("12.5", "s", 12.5),
        (12, "s", 12),
        (" 250 ms ", "s", 0.25),
        ("0.25 s", "ms", 250),
        ("1.2e3", "", 1200),
        (".5 MB", "kB", 500),
        ("2 Mbit/s", "kbit/s", 2000),
        ("3 round trips", "round trips", 3),
        ("250 MS", "s", 0.25),
        ("2 mbit/S", "kbit/s", 2000),
        ("5 KB", "kB", 5),
    ],
)
def test_a_number_may_have_any_unit_of_its_kind(text, unit, value):
    assert number(text, unit) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "unit", "says"),
    [
        (None, "s", "found nothing; expected a number in s"),
        (True, "s", "found the word true"),
        ([1], "s", "found a list or keys"),
        ("about ten", "s", "about ten"),
        ("1,5", "s", "with a point where you have a comma"),
        ("5 kB", "s", "with the unit"),
        ("5 kb", "kB", "with the unit"),
        ("5 s", "", "expected a number alone"),
        ("nan", "s", "expected a number in s"),
        ("1e999", "s", "expected a number in s"),
        (float("inf"), "s", "a number without end"),
        (10**400, "s", "a number without end"),
        ("9" * 10000, "s", "expected a number"),
        ("1..2", "s", r'^found "1\.\.2"; expected a number in s, such as 12\.5'),
        ("1.2.3", "s", r'^found "1\.2\.3"; expected a number in s'),
    ],
)
def test_what_is_no_number_is_told_with_what_was_found_and_expected(text, unit, says):
    with pytest.raises(GivenError, match=says):
        number(text, unit)


def test_the_unit_behind_an_interval_is_that_of_both_ends():
    assert interval("1..2 Mbit/s", "kbit/s") == (1000, 2000)
    assert interval("900 kbit/s..1 Mbit/s", "kbit/s") == (900, 1000)
    assert interval("7..7", "kbit/s") == (7, 7)


@each(
    "text says",
    r"""
1..2..3 | ^found "1\.\.2\.\.3"; expected LOW\.\.HIGH, such as 10\.\.20 kbit/s$
1..2 kg | ^found "2 kg" with the unit "kg"; expected one of bit/s
1...2 | ^found "1\.\.\.2"; expected LOW\.\.HIGH with 0 < LOW <= HIGH
""",
)
def test_what_is_no_interval_is_told_as_it_was_typed(text, says):
    assert re.search(says, refusal(interval, text, "kbit/s", error=GivenError))


@pytest.mark.parametrize("text", ["-1", "0", "0 ms", "-5 s"])
def test_nobody_expects_a_quantity_of_0_or_less(text):
    said = refusal(read_predicted, TIME, text, error=GivenError)
    assert said == f'found "{text}"; expected a number above 0 in s'
    # A number without a quantity may be.
    for unit in ("", "%"):
        read_predicted(TIME.model_copy(update={"unit": unit}), "-1")


@pytest.mark.parametrize(
    "text",
    ["", "5", "5..", "..5", "2..1", "0..1", "-1..1", "1-2", "1..2..3", None, 5, [1, 2], "1 s..2 kB", "1e-400..1"],
)
def test_what_is_no_interval_is_refused(text):
    with pytest.raises(GivenError, match="expected"):
        interval(text, "kbit/s")


@drawn(st.text() | st.integers() | st.floats() | st.none() | st.lists(st.integers()))
def test_whatever_is_written_is_a_finite_number_or_refused(text):
    for read in (number, interval):
        try:
            found = read(text, "s")
        except GivenError:
            continue
        assert all(math.isfinite(value) for value in (found if isinstance(found, tuple) else (found,)))


@pytest.mark.parametrize(
    ("text", "share", "comment"),
    [
        ("100", 1, "right"),
        ("102 kB", 1, "right"),
        ("98000 B", 1, "right"),
        ("102.1", 0.7, "nearly"),
        ("94", 0.7, "nearly"),
        ("81", 0.2, "far"),
        ("51", 0.3, "one way"),  # 2 % of the mistake's number, as of the right one
        ("51.1", 0, "not right"),
        ("105", 0.9, "with headers"),  # the mistake is worth more than the distance
        ("-100", 0, "not right"),
    ],
)
def test_a_number_is_right_near_a_known_mistake_or_wrong(text, share, comment):
    score = score_answer(ASKED, RIGHT, text)
    assert (score.share, score.comment, score.is_readable) == (share, comment, True)


def test_what_cannot_be_read_has_no_points_and_says_so():
    score = score_answer(ASKED, RIGHT, "plenty")
    assert (score.share, score.is_readable) == (0, False)
    assert "plenty" in score.comment


def test_words_are_right_known_mistakes_or_refused():
    asked = model.ChoiceAnswer(kind="choice", question="What?", choices={"window": "w", "rate": "r", "queue": "q"})
    right = RightWord(kind="choice", value="window", wrong=(Mistake(value="rate", share=0.1, comment="it was idle"),))
    found = [score_answer(asked, right, word) for word in ("window", "RATE", "queue", "windw", None, " Window ")]
    shares = [(1, True), (0.1, True), (0, True), (0, False), (0, False), (1, True)]
    assert [(score.share, score.is_readable) for score in found] == shares
    assert found[1].comment == "it was idle"


@pytest.mark.parametrize(
    "given", ["1e-320", "4.9e-324", "1e308", "9e307 h", "4.9e-324..5", "4.9e-324..1.7e308", "1e308 h..2e308 h"]
)
def test_predictions_at_the_ends_of_the_numbers_have_a_score(given):
    asked, scoring = (BOUNDS.model_copy(update={"unit": "s"}), CALIBRATED) if ".." in given else (TIME, RATIO)

    assert score_prediction(asked, scoring, 5.2, given).share == 0


def test_a_prediction_loses_points_by_the_logarithm_of_its_ratio_to_the_truth():
    shares = [score_prediction(TIME, RATIO, 10, text).share for text in ("10", "12.5", "8", "40", "2.5", "0", "-10")]
    assert shares == [1, 1, 1, 0, 0, 0, 0]
    middle = 10 * math.sqrt(1.25 * 4)
    assert score_prediction(TIME, RATIO, 10, middle).share == pytest.approx(0.5)


def test_a_prediction_of_what_may_be_0_loses_points_by_its_distance():
    scoring = model.Distance(kind="distance", truth="1 - 1", full=1, zero=5)
    assert [score_prediction(TIME, scoring, 0, text).share for text in (0, 1, -1, 3, 5, 50)] == [1, 1, 1, 0.5, 0, 0]


@pytest.mark.parametrize(
    ("text", "share"),
    [("900..1100", 1), ("500..1000", 1), ("500..2000", 0.5), ("200..1600", 0), ("1001..1002", 0), ("10..999", 0)],
)
def test_an_interval_has_to_hold_the_truth_and_to_be_narrow(text, share):
    assert score_prediction(BOUNDS, CALIBRATED, 1000, text).share == pytest.approx(share)


def test_a_predicted_word_is_right_or_not():
    asked = model.ChoicePrediction(kind="choice", question="Which?", choices={"reno": "Reno", "cubic": "CUBIC"})
    scoring = model.Word(kind="choice", truth="1 + 1")
    assert [score_prediction(asked, scoring, "cubic", word).share for word in ("cubic", "reno", "bbr")] == [1, 0, 0]
