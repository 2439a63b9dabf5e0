"""Load: turns a name or path, a variant and overrides into a complete scenario, and writes it with every default value.

Reads nothing else on the machine.
"""

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from scpslab.core import own_kinds
from scpslab.core.choices import choice, one_of
from scpslab.core.errors import ScenarioError
from scpslab.core.problems import KeyPath, Problem, dotted
from scpslab.core.project import ROOT
from scpslab.documents.document import Places, as_tuples, read, validated
from scpslab.documents.quantities import AxisValue
from scpslab.documents.yaml_lines import value_text, written
from scpslab.plan.topology import Network
from scpslab.scenario import paths
from scpslab.scenario.consistency import describe, error_problems, idle_skips, mtu_problems, problems
from scpslab.scenario.model import FORM, Cases, ScenarioFile, Values, Variant, axis_values, settings_at
from scpslab.scenario.stacks import STACKS, stack
from scpslab.scenario.survey import Surveyed, survey
from scpslab.scenario.topologies import OnDisk, Topologies


@dataclass(frozen=True)
class Given:
    """A value that somebody set: `source` names it in messages, `path` is as they wrote it."""

    source: str
    path: str
    value: Any


def lies(before: Mapping[str, Any], given: Sequence[Given], model: ScenarioFile, network: Network) -> Iterator[str]:
    """What is wrong with these values, given the data before them and the scenario after them."""
    yield from _renamed(before, model)
    plain = [one for one in given if not one.path.startswith("sweep")]
    # The values of axes are thousands, and no place is among them.
    data = {key: value for key, value in before.items() if key != "sweep"}
    for axis, spec in model.sweep.items() if plain else ():
        for value in axis_values(spec):
            yield from _lies_at(data, plain, axis, spec, value, network)


def _renamed(before: Mapping[str, Any], model: ScenarioFile) -> Iterator[str]:
    axes = before.get("sweep")
    for axis, was in (axes if isinstance(axes, dict) else {}).items():
        spec = model.sweep.get(axis)
        for label, settings in was.get("cases", {}).items():
            if isinstance(spec, Cases) and label in spec.cases and as_tuples(spec.cases[label]) != as_tuples(settings):
                yield (
                    f"sweep.{axis}.cases.{label}: found other settings for a case of the scenario; "
                    f'expected the label "{label}" to keep its meaning. '
                    "Give your case a name of its own."
                )


def _lies_at(
    before: Mapping[str, Any],
    given: Sequence[Given],
    axis: str,
    spec: Values | Cases,
    value: AxisValue,
    network: Network,
) -> Iterator[str]:
    where = f'case "{value}" of the axis "{axis}"' if isinstance(spec, Cases) else f'the axis "{axis}"'
    settings = settings_at(spec, value)
    try:
        swept = {
            place: setting for path, setting in settings.items() for place in paths.places_of(before, path, network)
        }
        for one in given:
            lost = next((place for place, own in _leaves(before, one, network) if _is_lost(place, own, swept)), None)
            if lost is not None:
                yield (
                    f"{one.source}: found {dotted(lost)}, which {where} replaces; expected a key that no axis sets. "
                    f"{_advice(axis, spec, one)}"
                )
            elif (contradicted := _contradicted(before, one, settings, swept, network)) is not None:
                yield (
                    f"{one.source}: found {contradicted}, which contradicts {where}; expected what its preset says. "
                    f"{_advice(axis, spec, one)}"
                )
    except paths.PathError:
        return  # said where the path is followed


def _leaves(data: Mapping[str, Any], one: Given, network: Network) -> list[tuple[KeyPath, Any]]:
    return [leaf for place in paths.places_of(data, one.path, network) for leaf in paths.below(place, one.value)]


def _is_lost(place: KeyPath, own: Any, swept: Mapping[KeyPath, Any]) -> bool:
    """Whether a point of the sweep puts another value at a place, above it or below it."""
    for other, setting in swept.items():
        if paths.leaves_out(place, own) or paths.leaves_out(other, setting):
            continue  # What is there is used where it is not left out.
        shared = min(len(place), len(other))
        if place[:shared] == other[:shared] and not (place == other and own == setting):
            return True
    return False


def _contradicted(
    before: Mapping[str, Any], one: Given, settings: Mapping[str, Any], swept: Mapping[KeyPath, Any], network: Network
) -> str | None:
    """The setting of a host that the sweep gives a stack or preset, and whose value there is another one with `one`
    than without.
    """
    hosts = [place[1] for place in swept if place[0] == "hosts" and _names_a_stack(place, swept[place])]
    if not hosts:
        return None
    without, having = copy.deepcopy(dict(before)), copy.deepcopy(dict(before))
    paths.set_value(having, one.path, one.value, network)
    for data in (without, having):
        for path, setting in settings.items():
            paths.set_value(data, path, setting, network)
    for host in dict.fromkeys(map(str, hosts)):
        its, mine = (_settled((data.get("hosts") or {}).get(host)) for data in (without, having))
        for name, was in its.items():
            if was is not None and name in mine and mine[name] != was:
                return f"hosts.{host} with {name} {value_text(mine[name])} instead of {value_text(was)}"
    return None


def _names_a_stack(place: KeyPath, setting: Any) -> bool:
    return place[2:] in (("stack",), ("preset",)) or (
        len(place) == 2 and isinstance(setting, dict) and bool({"stack", "preset"} & set(setting))
    )


def _settled(host: Any) -> Mapping[str, Any]:
    """What is settled of a host's TCP, by its preset or by its own words; nothing for a host that cannot be, which is
    said elsewhere.
    """
    try:
        return STACKS[stack(host)].model_validate(host).settled()
    except (KeyError, ValidationError):
        return {}


def _advice(axis: str, spec: Values | Cases, one: Given) -> str:
    if isinstance(spec, Values):
        return f"Set the axis: --set 'sweep.{axis}=[{value_text(one.value)}]'."
    return (
        f"Choose cases with --set 'sweep.{axis}=[LABEL]', or add one of your own: "
        f"--set 'sweep.{axis}.cases.NAME={{PATH: VALUE}}'."
    )


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
        given = [*_of_variant(variant, whole, places), *(Given(_option(text), *_setting(text)) for text in overrides)]
        network = network_with(data, [(one.path, one.value) for one in given], model, places, topologies, network)
        if variant:
            places = _apply_variant(data, variant, whole, network, places)
        for text in overrides:
            places = _apply_override(data, text, network, places)
        changed = {one.path.partition(".")[0] for one in given} | (OF_VARIANTS if variant else set())
        kept, kept_places = paths.without_left_out(data, places)
        model = changed_model(model, kept, changed, kept_places)
        if found := list(lies(before, given, model, network)):
            raise ScenarioError("\n".join(dict.fromkeys(found)))
        network, surveyed = check(model, kept_places, topologies)
    is_evidence = not variant or whole.variants[variant].evidence
    full = f"{label}:{variant}" if variant else label
    variants, kept_given = tuple(whole.variants), tuple(given)
    return Scenario(full, label, data, model, network, surveyed, places, variants, topologies, kept_given, is_evidence)


def changed_model(model: ScenarioFile, data: paths.Data, changed: Collection[str], places: Places) -> ScenarioFile:
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
    data: paths.Data,
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
            paths.set_value(own, path, value, was)
        return describe(changed_model(model, {**data, **own}, MADE_OF, places), places, topologies)
    except (paths.PathError, ScenarioError):
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
        return paths.read_override(text)
    except paths.PathError as error:
        raise _wrong_option(text, error) from error


def _wrong_option(text: str, error: paths.PathError) -> ScenarioError:
    return ScenarioError(f"{_option(text)}: {error.at((), 'Correct the option.')}")


def _apply_override(data: paths.Data, text: str, network: Network, places: Places) -> Places:
    """Puts an option's value into the data; returns the places of the data then."""
    option, (key, value) = _option(text), _setting(text)
    axis = _axis_named(data, key)
    if axis is None or isinstance(value, dict):
        try:
            return places.set_from(option, paths.set_value(data, key, value, network))
        except paths.PathError as error:
            raise _wrong_option(text, error) from error
    if problems := _keep_points(data, axis, value if isinstance(value, list) else [value]):
        raise ScenarioError("\n".join(f"{option}: {problem}" for problem in problems))
    return places.set_from(option, [("sweep", axis)])


def _apply_variant(data: paths.Data, name: str, whole: ScenarioFile, network: Network, places: Places) -> Places:
    """The same for a variant's values."""
    variant: Variant = whole.variants[name]
    here: KeyPath = ("variants", name)
    wrong: list[Problem] = []
    for key, value in variant.set.items():
        try:
            changed = paths.set_value(data, key, _as_lists(value), network)
            places = places.set_from(places.of((*here, "set", key)), changed)
        except paths.PathError as error:
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


def _keep_points(data: paths.Data, axis: str, kept: Sequence[AxisValue]) -> list[Problem]:
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


def _rename(data: paths.Data, renamed: Mapping[str, str]) -> None:
    data[TOPOLOGY] = renamed.get(data[TOPOLOGY], data[TOPOLOGY])
    for axis in data["sweep"].values():
        for settings in axis.get("cases", {}).values():
            if TOPOLOGY in settings:
                settings[TOPOLOGY] = renamed.get(settings[TOPOLOGY], settings[TOPOLOGY])
