"""From a sweep to cells: which there are, what they are called, what they say; and the scenario written out."""

import pytest

from scpslab import scenario
from scpslab.core import units
from scpslab.core.errors import ScenarioError
from scpslab.plan import write
from scpslab.scenario import planning
from tests.cases import changed, each, refusal


@pytest.fixture
def swept(small):
    """The small scenario with one axis more."""
    return lambda axis: changed(small, ("sweep:\n", f"sweep:\n  {axis}\n"))


def test_every_combination_and_repeat_is_a_cell_and_cases_set_all_their_paths(cells, swept):
    reno, bbr = "{hosts.*.preset: fy97-reno}", "{hosts.*.preset: modern, hosts.*.congestion_control: bbr}"
    found = cells(swept(f"stack: {{cases: {{reno: {reno}, bbr: {bbr}}}}}"))
    ids = [cell.id for cell in found]
    assert len(ids) == 2 * 3 * 2
    assert ids[:3] == ["stack=reno,ber=0,r1", "stack=reno,ber=0,r2", "stack=reno,ber=1e-06,r1"]
    assert ids[-1] == "stack=bbr,ber=1e-05,r2"
    assert {(host.preset, host.congestion_control) for host in found[-1].model.hosts.values()} == {("modern", "bbr")}


def test_star_means_both_directions_even_those_not_named_and_one_can_be_swept_alone(cells, small):
    last = cells(small)[-1].model
    rates = {name: direction.errors.settings.ber for name, direction in last.links["hop"].items()}
    assert rates == {"forward": 1e-5, "return": 1e-5}
    assert list(cells(changed(small, ("hop.*.errors", "hop.forward.errors")))[-1].model.links["hop"]) == ["forward"]


def test_settings_of_a_model_that_is_not_chosen_wait_for_a_sweep_and_stand_in_the_resolved_scenario(load, swept):
    text = swept("model: {set: [links.hop.forward.errors.model], values: [none, gilbert-elliott]}")
    loaded = load(
        changed(text, ("ber: 1e-6}", "ber: 1e-6, good_to_bad_per_bit: 1e-6, bad_to_good_per_bit: 1e-3, ber_bad: 0.5}"))
    )
    again = load(scenario.resolved_yaml(loaded))
    assert loaded.model.links["hop"]["forward"].errors.settings.model_dump() == {"ber": 1e-6}
    for cells in (scenario.cells(loaded), scenario.cells(again)):
        settings = cells[-1].model.links["hop"]["forward"].errors.settings.model_dump()
        expected = {"good_to_bad_per_bit": 1e-6, "bad_to_good_per_bit": 1e-3, "ber_good": 0.0, "ber_bad": 0.5}
        assert settings == expected | {"clock": "bits", "mean_good": None, "mean_bad": None}


def test_skipped_combinations_are_no_cells(cells, swept):
    text = swept("errors: {set: [links.hop.*.errors.model], values: [independent, clustered]}")
    ids = [cell.id for cell in cells(text + "skip:\n  - {errors: clustered, ber: 0}\n") if cell.repeat == 1]
    assert "errors=independent,ber=0,r1" in ids
    assert "errors=clustered,ber=0,r1" not in ids
    assert len(ids) == 5


def test_variant_changes_sweep_repeats_and_values(write, small):
    variant = "{sweep: {ber: [1e-4]}, repeats: 1, set: {workloads.transfer.size: 1 kB}, title: Less}"
    path = write(f"{small}variants:\n  little: {variant}\n")
    little = scenario.load(f"{path}:little")
    assert little.model.title == "Less"
    assert little.name == "small:little"
    assert [cell.id for cell in scenario.cells(little)] == ["ber=0.0001,r1"]
    assert little.model.workloads[0].size.text == "1 kB"


def test_variant_of_cases_keeps_the_labels_named(write, swept):
    text = swept("stack: {cases: {reno: {hosts.*.preset: fy97-reno}, bbr: {hosts.*.congestion_control: bbr}}}")
    path = write(text + "variants:\n  little: {sweep: {stack: [bbr], ber: [0]}}\n")
    found = scenario.cells(scenario.load(f"{path}:little"))
    assert [cell.id for cell in found] == ["stack=bbr,ber=0,r1", "stack=bbr,ber=0,r2"]


@each(
    "override value",
    """
workloads.transfer.size=1 kB | 1 kB
workloads.transfer.size="2 kB" | 2 kB
workloads.*.size=3 kB | 3 kB
""",
)
def test_override_sets_a_value(load, small, override, value):
    assert load(small, override).model.workloads[0].size.text == value


@pytest.mark.parametrize(
    ("overrides", "values"),
    [
        (["sweep.ber=[0, 2e-6]"], {0, 2e-6}),
        (["sweep.ber=1e-5"], {1e-5}),
        (["sweep.ber.values=[1e-7]"], {1e-7}),
        (["sweep.ber=[0, 1e-6]", "sweep.ber=[1e-6]"], {1e-6}),
    ],
)
def test_an_override_of_an_axis_gives_its_values_as_numbers_and_the_last_one_counts(cells, small, overrides, values):
    assert {cell.axes["ber"] for cell in cells(small, *overrides)} == values


def test_an_override_of_an_axis_with_cases_keeps_those_it_names():
    """A label that reads as another kind of value in YAML is the label all the same."""
    name, chosen = "sgls/itc-options", ["sweep.rate_control=[false]", "sweep.segments_per_ack=1"]
    found = scenario.cells(scenario.load(name, chosen))
    assert {(cell.axes["rate_control"], cell.axes["segments_per_ack"]) for cell in found} == {("false", "1")}
    said = refusal(scenario.load, name, ["sweep.rate_control=[maybe]"])
    assert 'found the case "maybe"; expected one of true, false' in said


@pytest.mark.parametrize("name", ["fy97/fig04:kernel", "fy97/fig04:kernel-test", "fy97/fig14:kernel-demo"])
def test_resolved_scenario_loads_again_to_the_same_cells(name, tmp_path):
    first = scenario.load(name)
    (path := tmp_path / "again.yaml").write_text(scenario.resolved_yaml(first))
    second = scenario.load(str(path))
    assert scenario.resolved_yaml(second) == scenario.resolved_yaml(first)
    for old, new in zip(scenario.cells(first), scenario.cells(second), strict=True):
        old_plan, new_plan = write(planning.plan(old)), write(planning.plan(new))
        assert old_plan["cell"].pop("scenario") != new_plan["cell"].pop("scenario")
        assert old_plan == new_plan


def test_points_that_change_links_share_all_else_and_each_is_judged(load, small, monkeypatch):
    described = []
    rule = scenario.load.__globals__["describe"]
    monkeypatch.setitem(scenario.load.__globals__, "describe", lambda *said: described.append(said) or rule(*said))
    sweep = "sweep:\n  rate: {{set: [links.hop.*.rate], values: [1 Mbit/s, 2 Mbit/s, {}]}}\n"
    loaded = load(small.replace("sweep:\n", sweep.format("3 Mbit/s")))
    before = len(described)
    first, *_, last = scenario.cells(loaded)

    assert len(described) == before + 1
    assert first.model.workloads[0] is last.model.workloads[0]
    assert [cell.surveyed.network.links[0].directions[0].rate_bps for cell in (first, last)] == [10**6, 3 * 10**6]
    with pytest.raises(
        ScenarioError, match=r'rate=9601 bit/s: links.hop.forward.rate: found "9601 bit/s"; expected a mul'
    ):
        scenario.cells(load(small.replace("sweep:\n", sweep.format("9601 bit/s"))))


@pytest.mark.parametrize(("overrides", "times"), [((), 1), (("repeats=3",), 1), (("workloads.transfer.port=6001",), 2)])
def test_a_value_is_read_once_and_again_where_something_beside_it_is_set(load, small, monkeypatch, overrides, times):
    read, parse = [], units.parse
    monkeypatch.setattr(units, "parse", lambda kind, value: read.append(value) or parse(kind, value))
    load(small, *overrides)
    assert read.count("100 kB") == times


def test_no_jitter_is_the_first_value_of_a_sweep_of_it(cells, swept):
    found = cells(swept("jitter: {set: [links.hop.forward.jitter], values: [0 ms, 5 ms]}"))
    plans = [planning.plan(cell) for cell in found if cell.repeat == 1]
    assert [plan.network.links[0].directions[0].jitter_ns for plan in plans] == [0, 0, 0, *[5_000_000] * 3]
    assert [one.seed for one in plans[1].cell.impairments] == [None, None]
