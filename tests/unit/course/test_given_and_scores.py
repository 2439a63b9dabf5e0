"""What students write is read with units and intervals or refused with a reason; shares of points by distance, mistake
and calibration.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
import yaml
from hypothesis import given as drawn
from hypothesis import strategies as st
from scipy import stats

from scpslab_course.course import model
from scpslab_course.course.answers import (
    GivenError,
    Mistake,
    NearEnough,
    RightLines,
    RightNumber,
    RightWord,
    interval,
    interval_share,
    number,
    read_predicted,
    score_answer,
    score_lines,
    score_prediction,
)
from tests import golden
from tests.cases import refusal

ASKED = model.NumberAnswer(kind="number", question="How much?", unit="kB")
RIGHT = RightNumber(
    kind="number",
    value=100,
    distance=2,
    partial=(NearEnough(distance=6, share=0.7, comment="nearly"), NearEnough(distance=20, share=0.2, comment="far")),
    wrong=(Mistake(value=50, share=0.3, comment="one way"), Mistake(value=105, share=0.9, comment="with headers")),
)
BOUNDS = model.IntervalPrediction(kind="interval", question="Between?", unit="kbit/s")
CALIBRATED = model.Interval(kind="interval", truth="1 + 1")


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
        ("1.5 Mbps", "kbit/s", 1500),
        ("900 kb/s", "kbit/s", 900),
        ("172 Mkm", "million km", 172),
        ("40 \N{MICRO SIGN}s", "ms", 0.04),
    ],
)
def test_a_number_may_have_any_unit_of_its_kind(text, unit, value):
    assert number(text, unit) == pytest.approx(value)


@golden.each("a number that is predicted or answered", "case text unit")
def test_what_is_no_number_is_told_with_what_was_found_and_expected(case, text, unit):
    case.hold(refusal(number, yaml.safe_load(text), unit, error=GivenError))


def test_the_unit_behind_an_interval_is_that_of_both_ends():
    assert interval("1..2 Mbit/s", "kbit/s") == (1000, 2000)
    assert interval("900 kbit/s..1 Mbit/s", "kbit/s") == (900, 1000)
    assert interval("7..7", "kbit/s") == (7, 7)


def test_a_unit_behind_the_first_number_alone_is_asked_about():
    said = refusal(interval, "500 ms..900", "s", error=GivenError)
    assert said == 'found "500 ms..900"; expected the unit behind the second number, such as 500..900 ms'


@golden.each("an interval that is predicted")
def test_what_is_no_interval_is_told_as_it_was_typed(case):
    case.hold(refusal(interval, case, "kbit/s", error=GivenError))


@golden.each("a prediction in the unit of the question")
def test_a_prediction_is_read_back_or_refused_in_the_unit_of_the_question(case):
    try:
        said = read_predicted(BOUNDS.model_copy(update={"within": (50, 9000)}), case)
    except GivenError as error:
        said = str(error)
    case.hold(said)


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


def test_a_fraction_where_percent_is_asked_is_a_known_slip():
    asked, right = ASKED.model_copy(update={"unit": "%"}), replace(RIGHT, value=36.0, distance=0.5)
    said = "This is a fraction. The question asks for percent."
    assert [
        (found.share, found.comment) for given in (0.36, "0.363", 0.5) if (found := score_answer(asked, right, given))
    ] == [
        (0.4, said),
        (0.4, said),
        (0, "not right"),
    ]
    assert score_answer(ASKED, replace(RIGHT, value=36.0, distance=0.5), 0.36).share == 0


def test_of_two_mistakes_the_nearer_one_was_made():
    wrong = (Mistake(value=50, share=0, comment="half"), Mistake(value=50.5, share=0.7, comment="half of KiB"))
    found = [score_answer(ASKED, replace(RIGHT, wrong=wrong), text).comment for text in ("50", "50.2", "50.3", "51.5")]
    assert found == ["half", "half", "half of KiB", "half of KiB"]


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
    "given", ["1e-320..2e-320", "1e307..1e308", "4.9e-324..5", "4.9e-324..1.7e308", "1e308 h..2e308 h"]
)
def test_predictions_at_the_ends_of_the_numbers_have_a_score(given):
    assert score_prediction(BOUNDS.model_copy(update={"unit": "s"}), CALIBRATED, 5.2, given).share == 0


@pytest.mark.parametrize(
    ("text", "share"),
    [
        # The factor is 4: log4(2) = 0.5, and a twentieth of it is 0.025.
        ("1000..1000", 1),
        ("500..1000", 0.975),
        ("500..2000", 0.95),
        ("1..1048576", 0.5),
        ("2000..2000", 0.5),
        ("250..500", 0.475),
        ("250..250", 0),
        ("9000..9001", 0),
    ],
)
def test_an_interval_costs_a_little_for_its_width_and_much_for_a_truth_outside(text, share):
    assert score_prediction(BOUNDS, CALIBRATED, 1000, text).share == pytest.approx(share)


def test_units_change_no_share_and_a_truth_of_0_has_none():
    assert interval_share(1, 3, 4, 4) == pytest.approx(interval_share(1000, 3000, 4000, 4))
    assert interval_share(1, 3, 0, 4) == 0


BELIEFS = {
    "sure": stats.lognorm(s=0.05, scale=20),
    "unsure": stats.lognorm(s=0.4, scale=2e6),
    "skewed": stats.gamma(a=4, scale=3),
    "between two bounds": stats.uniform(2, 5),
    "long on the left": stats.beta(5, 2),
}


@pytest.mark.parametrize("belief", BELIEFS)
def test_the_interval_in_which_somebody_is_90_percent_sure_has_most_points_on_average(belief):
    """The scoring is proper: whoever says what they believe loses nothing by it, however unsure they are."""
    quantile = BELIEFS[belief].ppf
    truths = quantile((np.arange(400) + 0.5) / 400).tolist()

    def points(low: float, high: float) -> float:
        ends = quantile([low, high]).tolist()
        return sum(interval_share(*ends, truth, 4) for truth in truths) / len(truths)

    levels = [(low / 100, high / 100) for low in range(1, 31, 2) for high in range(71, 100, 2)]
    found = {level: points(*level) for level in levels}

    assert max(found, key=found.__getitem__) == (0.05, 0.95)
    # Too narrow is worse than too wide, and nobody who is unsure ends far from all points.
    assert found[0.29, 0.71] < found[0.01, 0.99] < found[0.05, 0.95]
    assert found[0.05, 0.95] > 0.9


LINES = RightLines(key="frame", column="cause", values={"7": "queue", "9": "corrupt", "12": "queue"})


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("number,frame,seq,cause\n1,7,0,queue\n2,9,0,corrupt\n3,12,0,queue\n", 1),
        ("\ufeffFrame;Cause\r\n12;queue\r\n9;CORRUPT\r\n 7 ; queue \r\n", 1),
        ("frame,cause\n7,queue\n12,queue\n", 2 / 3),
        ("frame,cause\n7,queue\n9,queue\n12,queue\n", 2 / 3),
        ("frame,cause\n7,queue\n9,corrupt\n12,queue\n13,queue\n", 3 / 4),
        # A spreadsheet saves rows without text, too.
        ("frame,cause,\n,,\n7,queue,\n9,corrupt,\n12,queue,\n,,\n , ,\n,,\n\n", 1),
        ("frame,cause\n7,queue\n9,corrupt\n12,queue\n13,\n", 3 / 4),
        # Whoever lists all four causes of a frame has listed three wrong ones.
        ("frame,cause\n" + "".join(f"7,{cause}\n" for cause in ("corrupt", "outage", "superfluous", "queue")), 1 / 4),
        ("frame,cause\n", 0),
    ],
)
def test_a_table_has_the_share_of_its_lines_that_are_right(text, share):
    found = score_lines(LINES, text.encode())
    assert (found.share, found.is_readable) == (pytest.approx(share), True)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"frame;why\n1;x\n", b'frame,cause\n"7,queue\n', b"seq,frame,cause\n7,queue\n"]
)
def test_what_is_no_table_waits_for_a_person(content):
    found = score_lines(LINES, content)
    assert (found.share, found.is_readable) == (0, False)
    assert "frame and cause" in found.comment


def test_a_line_that_is_wrong_is_named():
    assert score_lines(LINES, b"frame,cause\n7,queue\n9,outage\n").comment == (
        '1 of 3 lines are right; look at frame "9"'
    )


def test_a_predicted_word_is_right_or_not():
    asked = model.ChoicePrediction(kind="choice", question="Which?", choices={"reno": "Reno", "cubic": "CUBIC"})
    scoring = model.Word(kind="choice", truth="1 + 1")
    assert [score_prediction(asked, scoring, "cubic", word).share for word in ("cubic", "reno", "bbr")] == [1, 0, 0]
