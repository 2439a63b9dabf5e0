"""Campaigns: a file that lists scenarios, with variants and overrides, to be run together
(scenarios/campaigns/*.yaml).
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from scpslab.core.choices import one_of
from scpslab.core.contents import content_of
from scpslab.core.errors import ScenarioError
from scpslab.documents.document import as_tuples, read
from scpslab.documents.document import load as load_document
from scpslab.documents.parts import Part, Version, key
from scpslab.documents.quantities import Name
from scpslab.documents.yaml_lines import Form, read_value, value_text
from scpslab.scenario.load import FOLDER, Scenario, base_label, load, names, variants_of
from scpslab.scenario.topologies import Topologies

CAMPAIGNS = "campaigns"
FORM = Form("a campaign", "kind, title, runs", "docs/scenarios.md")


class Entry(Part):
    """Scenarios to run with the same variant and overrides.

    Attributes:
        scenario: A scenario's name or path; ? and * stand for one or several letters. An entry that matches no scenario
            is skipped.
        variant: Variants; the first one that the scenario has is run. A scenario with none of them is skipped. Default:
            the whole scenario.
        set: From each path to its value, as with --set.
    """

    scenario: str = key(example="fy97/fig??")
    variant: tuple[Name, ...] = key((), example=["quick", "demo"])
    set: dict[str, Any] = key({}, example={"repeats": 10})


class CampaignVariant(Part):
    """A named version of a campaign, chosen as CAMPAIGN:VARIANT.

    Attributes:
        title: Title. Default: unchanged.
        runs: The scenarios to run.
    """

    title: str | None = key(None)
    runs: Annotated[tuple[Entry, ...], Field(min_length=1)]


class CampaignFile(Part):
    """Scenarios that run together.

    Attributes:
        title: One line.
        description: The question of the campaign.
        runs: The scenarios to run, in this order.
        variants: Named versions with other scenarios, chosen as CAMPAIGN:VARIANT.
    """

    kind: Literal["campaign"]
    version: Version
    title: Annotated[str, Field(min_length=1)]
    description: str = key("")
    runs: Annotated[tuple[Entry, ...], Field(min_length=1)]
    variants: dict[Name, CampaignVariant] = key({})


@dataclass(frozen=True)
class Member:
    """One scenario of a campaign: its name with the variant, and its overrides."""

    name: str
    overrides: tuple[str, ...]

    @classmethod
    def of(cls, name: str, settings: Mapping[str, Any]) -> Self:
        """A scenario in which these paths have these values."""
        return cls(name, tuple(f"{key}={_as_text(value)}" for key, value in settings.items()))

    def load(self, more: Sequence[str] = (), topologies: Topologies | None = None) -> Scenario:
        """The scenario.

        Raises:
            ScenarioError: everything that is wrong with it.
        """
        return load(self.name, [*self.overrides, *more], topologies)


@dataclass(frozen=True)
class Campaign:
    """A campaign with its variant applied: the scenarios to run, and the entries that match no scenario."""

    name: str
    title: str
    variants: tuple[str, ...]
    members: tuple[Member, ...]
    left_out: tuple[str, ...]


def campaign_names() -> list[str]:
    """The names of the project's campaigns."""
    return [f"{CAMPAIGNS}/{file.stem}" for file in sorted((FOLDER / CAMPAIGNS).glob("*.yaml"))]


def campaign_path(name: str) -> Path | None:
    """The file of a campaign's name or path, with or without variant; None if there is no such file."""
    return _path(name.partition(":")[0] if not Path(name).is_file() else name)


def is_campaign(name: str) -> bool:
    """Whether a name or path, with or without variant, names a campaign: one of the project's folder, or a file of that
    kind.
    """
    path = campaign_path(name)
    if path is None:
        return False
    if path.parent.name == CAMPAIGNS:
        return True
    try:
        # A large file that is none is not read twice.
        return b"campaign" in content_of(path) and read(path, FORM).data.get("kind") == "campaign"
    except (ScenarioError, OSError):
        return False


def load_campaign(name: str) -> Campaign:
    """The campaign `name[:variant]`.

    Raises:
        ScenarioError: all errors of the campaign's file. Scenarios are checked when they are loaded.
    """
    base, _, variant = (name, "", "") if Path(name).is_file() else name.partition(":")
    path = _path(base)
    if path is None:
        raise ScenarioError(f'campaign "{base}": found no such file; {one_of(base, campaign_names())}')
    file, places = load_document(path, FORM, CampaignFile)
    if variant and variant not in file.variants:
        raise ScenarioError(f'{places.of(("variants",))}: found no "{variant}"; {one_of(variant, file.variants)}')
    entries = file.variants[variant].runs if variant else file.runs
    title = (file.variants[variant].title if variant else None) or file.title
    label = base_label(path)
    members: dict[Member, None] = {}
    left_out = []
    for entry in entries:
        fitting = _fitting(entry, path.parent)
        if not fitting:
            left_out.append(entry.scenario)
        for scenario in fitting:
            named = _with_variant(scenario, entry.variant)
            if named is None:
                left_out.append(f"{scenario}:{'|'.join(entry.variant)}")
            else:
                members[Member.of(named, entry.set)] = None
    if not members:
        raise ScenarioError(
            f"{places.of(('runs',))}: found no scenario that matches {', '.join(left_out)}; expected at least one. "
            "scpslab list names all."
        )
    return Campaign(
        f"{label}:{variant}" if variant else label, title, tuple(file.variants), tuple(members), tuple(left_out)
    )


def _path(name: str) -> Path | None:
    return next(filter(Path.is_file, (Path(name), FOLDER / f"{name}.yaml")), None)


def _fitting(entry: Entry, beside: Path) -> list[str]:
    """The names of the project's scenarios that an entry names, or the path of a file next to the campaign's file."""
    file = beside / entry.scenario
    if file.is_file():
        return [str(file)]
    return [name for name in names() if fnmatchcase(name, entry.scenario)]


def _with_variant(scenario: str, wanted: tuple[str, ...]) -> str | None:
    """The scenario with the first variant that it has; None if it has none of them, because the whole scenario could
    take days.
    """
    if not wanted:
        return scenario
    has = variants_of(scenario)
    return next((f"{scenario}:{variant}" for variant in wanted if variant in has), None)


def _as_text(value: Any) -> str:
    """A value as --set reads it: YAML in flow style; as JSON where plain words would be read as something else."""
    plain = _plain(value)
    with suppress(ValueError):
        if as_tuples(read_value(plain)) == as_tuples(value):
            return plain
    # YAML takes some characters by their number only.
    quoted = json.dumps(value, ensure_ascii=False, default=str)
    return "".join(letter if letter.isprintable() else f"\\U{ord(letter):08x}" for letter in quoted)


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_plain(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_plain, value)) + "]"
    return value_text(value)
