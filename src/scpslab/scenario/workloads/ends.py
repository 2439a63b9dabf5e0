"""The two ends of a workload as scenarios write them: a host, or a host with the link that it is to have its address on."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

PATTERN = r"^[a-z][a-z0-9_-]{0,39}(\.[A-Za-z0-9_][A-Za-z0-9_+=,-]{0,99})?$"


def _is_end(value: object) -> object:
    if isinstance(value, str) and not re.fullmatch(PATTERN, value):
        raise ValueError(f'found "{value[:60]}"; expected a host, or HOST.LINK for its address on a link, such as "ws2" or "ws2.hop"')
    return value


# A host, or HOST.LINK.
End = Annotated[str, BeforeValidator(_is_end), WithJsonSchema({"type": "string", "pattern": PATTERN})]
