"""A run and a campaign for the tests of reports."""

import json

import pytest


@pytest.fixture(scope="session")
def run_dir(tmp_path_factory, synthetic):
    """A run of two stacks, three BERs and two repeats, one cell incomplete, under a name that claims are bound to."""
    folder = synthetic.write_run(tmp_path_factory.mktemp("runs") / "fy97-fig04-kernel-0001", repeats=2)
    for plan in folder.glob("cells/*/plan.json"):
        fields = json.loads(plan.read_text())
        fields["cell"]["scenario"] = "fy97/fig04:kernel"
        fields["cell"]["axes"] |= {
            "errors": "clustered",
            "stack": fields["cell"]["axes"]["stack"].replace("reno", "fy97-reno"),
        }
        plan.write_text(json.dumps(fields))
    (folder / "scenario.resolved.yaml").write_text(
        "title: Corruption <b>&amp; more</b>\nsource: Figs 4 and 5\ndescription: What happens?\n"
    )
    return folder


@pytest.fixture(scope="session")
def campaign_dir(run_dir):
    """A campaign of that run, and of one that has not been run yet."""
    folder = run_dir.parent / "campaigns-some-0001"
    folder.mkdir()
    fields = {
        "format": 1,
        "campaign": "campaigns/some",
        "title": "Some campaign",
        "status": "interrupted",
        "left_out": ["sgls/*"],
    }
    fields["runs"] = [
        {"scenario": "fy97/fig04:kernel", "run": f"../{run_dir.name}"},
        {"scenario": "fy97/fig06:kernel", "run": "../not-there"},
    ]
    (folder / "campaign.json").write_text(json.dumps(fields))
    return folder
