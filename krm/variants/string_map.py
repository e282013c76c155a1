"""Maps from text to text in YAML, where a value may be written without quotes and read as something else."""

from collections.abc import Mapping
from typing import Any


def with_strings(written: Mapping[str, Any], text: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``wanted``, values that say the same already as they are written.

    Args:
        written: The map as it is read: ``port: 80`` is a number.
        text: The same map with all scalars as text: there it is ``"80"``.
        wanted: What the map should say.
    """
    return {key: written[key] if key in written and text.get(key) == value else value for key, value in wanted.items()}
