"""The models of a kind of file described for editors (JSON Schema) and for people (tables in Markdown)."""

from collections.abc import Iterable, Mapping
from typing import Any

import yaml
from pydantic import BaseModel

from scpslab.documents.parts import said_of


def schema_of(part: type[BaseModel], schema_id: str, title: str) -> dict[str, Any]:
    """The JSON Schema (draft 7) of a file."""
    made = part.model_json_schema(by_alias=True)
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "$id": schema_id, "title": title}
    body: dict[str, Any] = _draft7({key: value for key, value in made.items() if key != "title"})
    return head | body


def tables(sections: Iterable[tuple[str, type[BaseModel]]]) -> str:
    """A table for every part under its title, each key with type, default, meaning and an example."""
    made = []
    for title, part in sections:
        made.append(
            f"\n## {title}\n\n{_summary(part)}\n\n| key | type | default | meaning | example |\n|---|---|---|---|---|\n"
        )
        made += _rows(part)
    return "".join(made)


def _draft7(value: Any) -> Any:
    """Pydantic writes the 2020 dialect; editors read draft 7: definitions, and no OpenAPI discriminators."""
    if isinstance(value, list):
        return [_draft7(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    # A title that is text is Pydantic's own invention; one that is a schema describes the key of that name.
    kept = {
        key: inner
        for key, inner in value.items()
        if key != "discriminator" and not (key == "title" and isinstance(inner, str))
    }
    renamed = {"definitions" if key == "$defs" else key: _draft7(inner) for key, inner in kept.items()}
    if isinstance(renamed.get("$ref"), str):
        renamed["$ref"] = renamed["$ref"].replace("#/$defs/", "#/definitions/")
    if isinstance(renamed.get("description"), str):
        # A docstring's lines end where the source's do.
        paragraphs = [" ".join(paragraph.split()) for paragraph in renamed["description"].split("\n\n")]
        renamed["description"] = renamed["markdownDescription"] = "\n\n".join(paragraphs)
    return renamed


def _summary(part: type[BaseModel]) -> str:
    return " ".join(said_of(part)[0].split())


def _rows(part: type[BaseModel]) -> list[str]:
    made = part.model_json_schema(by_alias=True)
    required = made.get("required", [])
    rows = []
    for name, spec in made["properties"].items():
        default = "*required*" if name in required else _default(spec.get("default"))
        example = f"`{_flow(spec['examples'][0])}`" if spec.get("examples") else "–"
        rows.append(
            f"| `{name}` | {_type(spec, made.get('$defs', {}))} | {default} | {spec.get('description', '')} | "
            f"{example} |\n"
        )
    return rows


def _default(value: Any) -> str:
    return "–" if value in (None, [], {}, "") and not isinstance(value, bool) else f"`{_flow(value)}`"


def _flow(value: Any) -> str:
    """A value as YAML on one line."""
    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**6, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...").replace("|", "\\|")


def _type(spec: Mapping[str, Any], parts: Mapping[str, Any]) -> str:
    """What kind of value a key takes, in words."""
    if "$ref" in spec:
        return _type(parts[spec["$ref"].rsplit("/", 1)[-1]], parts)
    if choices := [spec["const"]] if "const" in spec else spec.get("enum"):
        return ", ".join(f"`{choice}`" for choice in choices)
    if several := spec.get("anyOf") or spec.get("oneOf"):
        return " or ".join(dict.fromkeys(_type(one, parts) for one in several if one.get("type") != "null"))
    return str(spec["format"]) if "format" in spec else _plain_type(spec, parts)


def _plain_type(spec: Mapping[str, Any], parts: Mapping[str, Any]) -> str:
    kind = spec.get("type")
    if kind == "array":
        return f"list of {_type(spec.get('items', {}), parts)}"
    if kind == "object" and isinstance(spec.get("additionalProperties"), dict):
        return f"name to {_type(spec['additionalProperties'], parts)}"
    if kind in ("integer", "number"):
        return _number("whole number" if kind == "integer" else "number", spec)
    return {"string": "text", "boolean": "true or false", "object": "keys", None: "any value"}[kind]


def _number(word: str, spec: Mapping[str, Any]) -> str:
    least, most = spec.get("minimum"), spec.get("maximum")
    if least is not None and most is not None and most < 1 << 62:
        return f"{word}, {least:g} to {most:g}"
    return f"{word} from {least:g}" if least is not None else word
