"""Campaign files: patterns, variants, mistakes."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from scpslab import scenario
from scpslab.documents.yaml_lines import read_value
from scpslab.scenario.campaign import Member, campaign_names, is_campaign, load_campaign
from scpslab.scenario.paths import read_override
from tests import golden
from tests.cases import each, refusal

pytestmark = pytest.mark.slow

HEAD = "kind: campaign\nversion: 1\ntitle: Some\nruns:\n"


@pytest.fixture
def campaign(tmp_path):
    """A campaign file with these lines below `runs:`."""

    def write(lines: str) -> str:
        path = tmp_path / "some.yaml"
        path.write_text(HEAD + lines)
        return str(path)

    return write


def names(loaded):
    return [member.name for member in loaded.members]


def test_a_pattern_takes_what_it_fits_in_the_order_of_names(campaign):
    loaded = load_campaign(campaign('  - {scenario: "links/*"}\n  - {scenario: "nowhere/*"}\n'))

    assert names(loaded) == [name for name in scenario.names() if name.startswith("links/")]
    assert loaded.left_out == ("nowhere/*",)


def test_the_first_variant_that_a_scenario_has_is_taken(campaign):
    kernel = '  - {scenario: "fy97/fig0[46]", variant: [none-such, kernel-demo, test]}\n'
    loaded = load_campaign(campaign(kernel + "  - {scenario: links/loss, variant: [demo]}\n"))

    assert names(loaded) == ["fy97/fig04:kernel-demo", "fy97/fig06:kernel-demo"]
    assert loaded.left_out == ("links/loss:demo",), "its whole could take days"


def test_overrides_reach_the_scenario(campaign):
    settings = "{repeats: 7, sweep.ber.values: [0, 1e-6], limits.memory: 256 MiB}"
    loaded = load_campaign(campaign(f"  - {{scenario: links/loss, variant: [test], set: {settings}}}\n"))

    model = loaded.members[0].load().model
    assert model.repeats == 7
    assert model.limits.memory.text == "256 MiB"
    assert len(scenario.cells(loaded.members[0].load())) == 14


def as_read(value):
    """A value of a campaign as the scenario's --set has it."""
    return read_override(Member.of("x", {"k": value}).overrides[0])[1]


@pytest.mark.parametrize(
    "value",
    ["echo a # b", "a: b", "5", None, "", "a\nb", "2024-01-01", "!tcp", "null", "true", "1e-5", " a", "---", "\x7f\u2028😀",
     ["a, b", {"a: b": "5", "": None}]],
)  # fmt: skip
def test_a_value_that_plain_words_would_change_is_quoted(value):
    assert as_read(value) == value


# YAML has no NUL.
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
)  # fmt: skip


@given(VALUES)
@settings(max_examples=300, deadline=None)
def test_every_value_of_a_campaign_is_read_as_it_is(value):
    assert as_read(value) == value


@each(
    "value text",
    """
1 Mbit/s | 1 Mbit/s
echo a, b | echo a, b
[10 kbit/s, 1e-06, true] | [10 kbit/s, 1e-06, true]
{model: independent, ber: 1e-06} | {model: independent, ber: 1e-06}
""",
)
def test_ordinary_values_stand_as_people_write_them(value, text):
    assert Member.of("x", {"k": read_value(value)}).overrides == (f"k={text}",)


def test_a_scenario_twice_is_run_once(campaign):
    assert names(load_campaign(campaign("  - {scenario: links/loss}\n  - {scenario: links/los*}\n"))) == ["links/loss"]


@golden.each("campaign")
def test_mistakes_are_named(case, campaign, tmp_path):
    assert "some.yaml:" in case.hold(refusal(load_campaign, campaign(f"  {case}\n")), tmp_path)


@pytest.mark.parametrize("name", ["campaigns/papers:quik", "campaigns/paper"])
def test_unknown_variants_and_names_have_neighbours(name, told):
    told("campaign by a wrong name", name, load_campaign, name)


def test_a_campaign_is_told_from_a_scenario(campaign):
    assert is_campaign(campaign("  - {scenario: links/loss}\n"))
    assert is_campaign("campaigns/papers:quick")
    assert not is_campaign("fy97/fig04:kernel-demo")
    assert not is_campaign("nowhere/at-all")


def test_campaigns_of_the_project_are_no_scenarios():
    assert campaign_names() == ["campaigns/bbr-draft", "campaigns/papers", "campaigns/peers"]
    assert not [name for name in scenario.names() if name.startswith("campaigns/")]


def test_campaigns_of_the_project_need_nothing_that_it_does_not_ship():
    """An image of somebody's own may be there or not."""
    variants = yaml.safe_load((Path(__file__).parents[3] / "scenarios/campaigns/papers.yaml").read_text())["variants"]
    for name in ("campaigns/papers", *(f"campaigns/papers:{variant}" for variant in variants)):
        loaded = [member.load() for member in load_campaign(name).members]
        assert [one.name for one in loaded if '"stack":"image"' in one.model.model_dump_json()] == []
    assert '"stack":"image"' in scenario.load("links/interop-images").model.model_dump_json()
