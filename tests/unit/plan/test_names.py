"""Names: one rule, and no file name that leads elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scpslab import scenario
from scpslab.core.errors import ScenarioError
from scpslab.core.names import LONGEST_FILE_NAME, BadName, file_label, file_name, is_name
from scpslab.plan.topology import Network


@pytest.mark.parametrize("name", ["ws1", "stack=fy97-reno,ber=1e-06,r1", "hop", "r1", "a.b", "x+y", "_a", "A" * 100])
def test_names_of_today_are_names(name):
    assert is_name(name)
    assert file_name(name, suffix=".jsonl") == f"{name}.jsonl"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a\0",
        "a b",
        "a\n",
        "a" * 201,
        *[r".", r"..", r"a..b", r".a", r"-a", r"a/b", r"/a", r"ä", r"r1.part", r"$(x)", r"~", r"a\b", r"=x"],
    ],
)
def test_other_texts_are_none(name):
    assert not is_name(name)
    with pytest.raises(BadName, match="expected"):
        file_name(name)


@given(st.lists(st.text(max_size=30), max_size=3), st.sampled_from(["", ".u64"]))
def test_a_file_name_is_one_name_in_its_folder(names, suffix):
    try:
        made = file_name(*names, suffix=suffix)
    except BadName:
        return
    assert "/" not in made
    assert made not in (".", "..")
    assert len(made) <= LONGEST_FILE_NAME


@given(st.text(max_size=300))
def test_any_title_becomes_a_name(text):
    assert is_name(file_label(text))


def test_labels_of_scenarios_keep_their_form():
    assert file_label("fy97/fig04:kernel-demo") == "fy97-fig04-kernel-demo"
    assert file_label("../../etc/x") == "etc-x"


def test_a_topology_cannot_have_a_node_or_link_outside():
    network = Network("x")
    with pytest.raises(ValueError, match="expected letters"):
        network.host("../x")
    network.host("a")
    network.host("b")
    with pytest.raises(ValueError, match="expected letters"):
        network.link("a", "b", name="../x")


def test_a_case_cannot_make_a_cell_that_is_another_s_unfinished_state(tmp_path):
    name = "fy97/fig04:kernel-test"
    with pytest.raises(ScenarioError, match="Rename a case"):
        scenario.cells(scenario.load(name, ["sweep.stack.cases={a..b: {hosts.*.preset: modern}}"]))
