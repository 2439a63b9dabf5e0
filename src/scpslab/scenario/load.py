"""Load: turns a name or path, a variant and overrides into a complete scenario, and writes it with every default value.

Reads nothing else on the machine.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from scpslab.core import own_kinds
from scpslab.core.choices import choice, one_of
from scpslab.core.errors import ScenarioError
from scpslab.core.problems import KeyPath, Problem
from scpslab.core.project import ROOT
from scpslab.documents.document import as_tuples, read, validated
from scpslab.documents.places import Places
from scpslab.documents.quantities import AxisValue, value_text
from scpslab.documents.yaml_lines import written
from scpslab.plan.topology import Network
from scpslab.scenario.consistency import describe, error_problems, idle_skips, mtu_problems, problems
from scpslab.scenario.labels import Given, lies
from scpslab.scenario.model import FORM, ScenarioFile, Variant, axis_values, settings_at
from scpslab.scenario.paths import Data, PathError, read_override, set_value, without_left_out
from scpslab.scenario.survey import Surveyed, survey
from scpslab.scenario.topologies import OnDisk, Topologies

FOLDER = ROOT / "scenarios"
# What messages show of an option.
LONGEST_OPTION = 120
TOPOLOGY = "topology"
# What a topology is described from. It is set first: `*` stands for what is there then.
MADE_OF = (TOPOLOGY, "parameters")
# What a variant may have of its own besides what it sets.
OF_VARIANTS = {"title", "sweep", "repeats"}


@dataclass(frozen=True)
class Scenario:
    """A scenario with its variant and overrides applied.

    `data` is what the model was read from, with marks at parts that were left out, and `places` are its places; points
    of the sweep are set in copies of it. `base_name` is the name without the variant. `network` is its topology's.
    `given` is what the variant and the overrides have set. `is_evidence`: whether claims may use its cells (of a
    variant: whether it says so).
    """

    name: str
    base_name: str
    data: Mapping[str, Any]
    model: ScenarioFile
    network: Network
    surveyed: Surveyed
    places: Places
    variants: tuple[str, ...]
    topologies: Topologies
    given: tuple[Given, ...]
    is_evidence: bool

    @property
    def path(self) -> Path:
        """The file."""
        return self.places.path

    @property
    def is_of_project(self) -> bool:
        """Whether it is one of scenarios/, and not a user's own."""
        return self.path.resolve().is_relative_to(FOLDER)

    @property
    def title(self) -> str:
        """The title."""
        return self.model.title

    @property
    def seed(self) -> int:
        """The root of all random streams."""
        return self.model.seed


def names() -> list[str]:
    """The names of the project's scenarios.

    Campaigns, which list scenarios, have a folder of their own (campaign.py).
    """
    files = (file for file in sorted(FOLDER.glob("*/*.yaml")) if file.parent.name != "campaigns")
    return [str(file.relative_to(FOLDER).with_suffix("")) for file in files]


def find(name: str) -> Path:
    """The file of a scenario's name or path.

    Raises:
        ScenarioError: there is no such file; the message has the nearest names.
    """
    for path in (Path(name), FOLDER / f"{name}.yaml", FOLDER / name):
        if _is_there(path):
            return path
    if whole := next((f"{name}{ending}" for ending in (".yaml", ".yml") if _is_there(f"{name}{ending}")), ""):
        raise ScenarioError(
            f'scenario "{name}": found no such file; expected the whole name of one. Did you mean {whole}?'
        )
    raise ScenarioError(
        f'scenario "{name}": found {_instead_of_file(name)}; {one_of(name, [*_files_beside(name), *names()])}'
    )


def _is_there(name: str | Path) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def _instead_of_file(name: str) -> str:
    try:
        path = Path(name or "nothing")
        return "a folder" if path.is_dir() else "no ordinary file" if path.exists() else "no such file"
    except (OSError, ValueError):
        return "no such file"


def _files_beside(name: str) -> list[str]:
    """If a name is meant as a path: the paths of the YAML files in its folder, or in the folder that it is."""
    try:
        folder = Path(name) if name and Path(name).is_dir() else Path(name).parent
        wanted = folder == Path(name) or name.endswith((".yaml", ".yml"))
        return [str(file) for file in sorted(folder.glob("*.yaml")) if file.is_file()] if wanted else []
    except (OSError, ValueError):
        return []


def load(name: str, overrides: Sequence[str] = (), topologies: Topologies | None = None) -> Scenario:
    """The scenario `name[:variant]` with `KEY=VALUE` overrides.

    `topologies` finds its network; default: files on disk that are the user's own.

    Raises:
        ScenarioError: all errors of the scenario, one line each.
    """
    base, variant = _split(name)
    path = find(base)
    topologies = topologies or OnDisk()
    # Those of an archive are a stranger's.
    if isinstance(topologies, OnDisk):
        own_kinds.add_beside(path, is_trusted=topologies.is_trusted)
    document = read(path, FORM)
    data, places = document.data, document.places
    data["title"] = data.get("title") or path.stem
    whole = document.held_against(ScenarioFile)
    # A variant changes a complete scenario: the file must be valid without it.
    network, surveyed = check(whole, places, topologies)
    if idle := list(idle_skips(whole)):
        raise places.error(idle)
    data.pop("variants", None)
    label = base_label(path)
    model = whole.model_copy(update={"variants": {}})
    given: list[Given] = []
    if variant or overrides:
        before = copy.deepcopy(data)
        given = [*_of_variant(variant, whole, places), *map(_of_option, overrides)]
        network = network_with(data, [(one.path, one.value) for one in given], model, places, topologies, network)
        places = _apply(data, variant, overrides, whole, network, places)
        changed = {one.path.partition(".")[0] for one in given} | (OF_VARIANTS if variant else set())
        kept, kept_places = without_left_out(data, places)
        model = changed_model(model, kept, changed, kept_places)
        if found := list(lies(before, given, model, network)):
            raise ScenarioError("\n".join(dict.fromkeys(found)))
        network, surveyed = check(model, kept_places, topologies)
    is_evidence = not variant or whole.variants[variant].evidence
    full = f"{label}:{variant}" if variant else label
    variants, kept_given = tuple(whole.variants), tuple(given)
    return Scenario(full, label, data, model, network, surveyed, places, variants, topologies, kept_given, is_evidence)


def changed_model(model: ScenarioFile, data: Data, changed: Collection[str], places: Places) -> ScenarioFile:
    """The model of data that differ under these keys alone from those of a model, which has all others read.

    Raises:
        ScenarioError: all errors of the data, one line each.
    """
    read = {key: getattr(model, key) for key in data if key not in changed}
    try:
        return ScenarioFile.model_validate(as_tuples({key: data[key] for key in data if key in changed}) | read)
    except ValidationError:
        return validated(data, places, ScenarioFile)


def network_with(
    data: Data,
    settings: Iterable[tuple[str, Any]],
    model: ScenarioFile,
    places: Places,
    topologies: Topologies,
    was: Network,
) -> Network:
    """The network of data with these settings; `was` without, and where they are wrong, which whoever reads the data
    says.
    """
    made_of = [(path, value) for path, value in settings if path.partition(".")[0] in MADE_OF]
    if not made_of:
        return was
    own = {key: copy.deepcopy(data[key]) for key in MADE_OF if key in data}
    try:
        for path, value in made_of:
            set_value(own, path, value, was)
        return describe(changed_model(model, {**data, **own}, MADE_OF, places), places, topologies)
    except (PathError, ScenarioError):
        return was


def _of_variant(variant: str, whole: ScenarioFile, places: Places) -> list[Given]:
    """What a variant sets."""
    if not variant:
        return []
    if variant not in whole.variants:
        raise ScenarioError(f'{places.of(("variants",))}: found no "{variant}"; {one_of(variant, whole.variants)}')
    return [
        Given(places.of(("variants", variant, "set", key)), key, _as_lists(value))
        for key, value in whole.variants[variant].set.items()
    ]


def _of_option(text: str) -> Given:
    """What an option sets."""
    return Given(_option(text), *_setting(text))


def _apply(
    data: Data, variant: str, overrides: Sequence[str], whole: ScenarioFile, network: Network, places: Places
) -> Places:
    """Puts a variant's values and the overrides into the data; returns the places of the data then."""
    if variant:
        places = _apply_variant(data, variant, whole, network, places)
    for text in overrides:
        places = _apply_override(data, text, _setting(text), network, places)
    return places


def _split(name: str) -> tuple[str, str]:
    """Base and variant of a name or path; a file's name may have a colon in it."""
    if Path(name).is_file():
        return name, ""
    base, _, variant = name.partition(":")
    return base, variant


def variants_of(name: str) -> tuple[str, ...]:
    """The variants that a scenario's file lists; nothing else of it is checked.

    Raises:
        ScenarioError: there is no such file, or it has another form.
    """
    return tuple(read(find(_split(name)[0]), FORM).held_against(ScenarioFile).variants)


@cache
def evidence_variants(name: str) -> frozenset[str]:
    """The variants of one of the project's scenarios whose cells claims may use, "" for the whole of it.

    Raises:
        ScenarioError: everything that is wrong with its file.
    """
    path = FOLDER / f"{name}.yaml"
    if not path.is_file():
        return frozenset({""})
    variants = read(path, FORM).held_against(ScenarioFile).variants
    return frozenset({"", *(variant for variant, spec in variants.items() if spec.evidence)})


def check(model: ScenarioFile, places: Places, topologies: Topologies) -> tuple[Network, Surveyed]:
    """The topology of a valid scenario, and its network.

    Raises:
        ScenarioError: all contradictions in the scenario, one line each.
    """
    topology, surveyed = surveyed_at(model, places, topologies)
    surveyed, folder = surveyed.with_links(model), places.path.parent
    if wrong := [*problems(model, surveyed, folder), *error_problems(model, surveyed.network, folder)]:
        raise places.error(wrong)
    return topology, surveyed


def surveyed_at(model: ScenarioFile, places: Places, topologies: Topologies) -> tuple[Network, Surveyed]:
    """The topology of a scenario, and its network without what the scenario says of links, of which nothing is checked
    but what it is made of.

    Raises:
        ScenarioError: parameters or routes that cannot be.
    """
    topology = describe(model, places, topologies)
    surveyed, wrong = survey(model, topology)
    if wrong := wrong or list(mtu_problems(topology)):
        raise places.error(wrong)
    return topology, surveyed


def base_label(path: Path) -> str:
    """The name of a scenario file: its path within the project's folder, else the file's own name."""
    try:
        return str(path.resolve().relative_to(FOLDER).with_suffix(""))
    except ValueError:
        return path.stem


def _option(text: str) -> str:
    """An option as messages name it."""
    return f"--set {text if len(text) <= LONGEST_OPTION else f'{text[:LONGEST_OPTION]}…'}"


def _setting(text: str) -> tuple[str, Any]:
    """What an option sets."""
    try:
        return read_override(text)
    except PathError as error:
        raise _wrong_option(text, error) from error


def _wrong_option(text: str, error: PathError) -> ScenarioError:
    return ScenarioError(f"{_option(text)}: {error.at((), 'Correct the option.')}")


def _apply_override(data: Data, text: str, setting: tuple[str, Any], network: Network, places: Places) -> Places:
    option, (key, value) = _option(text), setting
    axis = _axis_named(data, key)
    if axis is None or isinstance(value, dict):
        try:
            return places.set_from(option, set_value(data, key, value, network))
        except PathError as error:
            raise _wrong_option(text, error) from error
    if problems := _keep_points(data, axis, value if isinstance(value, list) else [value]):
        raise ScenarioError("\n".join(f"{option}: {problem}" for problem in problems))
    return places.set_from(option, [("sweep", axis)])


def _apply_variant(data: Data, name: str, whole: ScenarioFile, network: Network, places: Places) -> Places:
    variant: Variant = whole.variants[name]
    here: KeyPath = ("variants", name)
    wrong: list[Problem] = []
    for key, value in variant.set.items():
        try:
            changed = set_value(data, key, _as_lists(value), network)
            places = places.set_from(places.of((*here, "set", key)), changed)
        except PathError as error:
            wrong.append(error.at((*here, "set", key), "Correct the path."))
    for axis, kept in variant.sweep.items():
        wrong += [problem.within(*here, "sweep", axis) for problem in _keep_points(data, axis, kept)]
    if wrong:
        raise places.error(wrong)
    data["title"] = variant.title or f"{whole.title} ({name})"
    if variant.repeats is not None:
        data["repeats"] = variant.repeats
    return places


def _axis_named(data: Mapping[str, Any], path: str) -> str | None:
    """The axis that a path such as `sweep.ber` names, nothing below it."""
    section, _, axis = path.partition(".")
    return axis if section == "sweep" and axis and "." not in axis and isinstance(data.get("sweep", {}), dict) else None


def _keep_points(data: Data, axis: str, kept: Sequence[AxisValue]) -> list[Problem]:
    """Reduces an axis to these cases, or gives it these values; returns the errors in them."""
    axes = data.get("sweep", {})
    if not isinstance(axes.get(axis), dict):
        return [Problem((), f'the axis "{axis}"', *choice(axis, axes))]
    if "cases" not in axes[axis]:
        axes[axis]["values"] = list(kept)
        return []
    cases = axes[axis]["cases"]
    labels = [value_text(label) for label in kept]
    axes[axis]["cases"] = {label: cases[label] for label in labels if label in cases}
    return [Problem((), f'the case "{label}"', *choice(label, cases)) for label in labels if label not in cases]


def _as_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_lists(inner) for key, inner in value.items()}
    return [_as_lists(inner) for inner in value] if isinstance(value, tuple | list) else value


def resolved_yaml(scenario: Scenario, renamed: Mapping[str, str] | None = None) -> str:
    """The resolved scenario as YAML, every default and every parameter of the topology in it; it loads again to the
    same cells.

    What a host, a link or a preset leaves open stays open here, because a sweep may close it; `scpslab plan` shows it
    closed for a cell. `renamed`: the new paths of topologies of the user's own, where the file will be.
    """
    data = scenario.model.model_dump(mode="json", by_alias=True, exclude={"variants"}, exclude_none=True)
    if not _is_topology_swept(scenario):
        parameters = scenario.topologies.find(scenario.model.topology, scenario.path.parent).parameters
        values = parameters.read(scenario.model.parameters)
        own = {name: parameters.declared[name].text(value) for name, value in values.items() if value is not None}
        data["parameters"] |= own
    _rename(data, renamed or {})
    return written(data)


def _is_topology_swept(scenario: Scenario) -> bool:
    """Whether points have other topologies, with parameters and defaults of their own."""
    return any(
        TOPOLOGY in settings_at(spec, value) for spec in scenario.model.sweep.values() for value in axis_values(spec)
    )


def _rename(data: Data, renamed: Mapping[str, str]) -> None:
    data[TOPOLOGY] = renamed.get(data[TOPOLOGY], data[TOPOLOGY])
    for axis in data["sweep"].values():
        for settings in axis.get("cases", {}).values():
            if TOPOLOGY in settings:
                settings[TOPOLOGY] = renamed.get(settings[TOPOLOGY], settings[TOPOLOGY])
