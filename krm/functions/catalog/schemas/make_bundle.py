"""Makes ``kubernetes.json.xz`` from a Kubernetes release's OpenAPI document; see ``PROVENANCE.md``."""

import json
import lzma
import sys
from pathlib import Path
from typing import Any

_KEPT = {"$ref", "additionalProperties", "format", "items", "properties", "required", "type"}
_GVK = "x-kubernetes-group-version-kind"


def bundle(swagger: bytes) -> bytes:
    """Return the compressed definitions of an OpenAPI v2 document, the same bytes for the same input."""
    definitions = json.loads(swagger)["definitions"]
    kept = {name: _stripped(schema) for name, schema in definitions.items()}
    for name, schema in definitions.items():
        if _GVK in schema:
            kept[name][_GVK] = schema[_GVK]
    text = json.dumps({"definitions": kept}, separators=(",", ":"), sort_keys=True)
    return lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)


def _stripped(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key in _KEPT}
    for key in ("items", "additionalProperties"):
        if key in kept:
            kept[key] = _stripped(kept[key])
    if "properties" in kept:
        kept["properties"] = {name: _stripped(value) for name, value in kept["properties"].items()}
    return kept


if __name__ == "__main__":
    Path(sys.argv[2]).write_bytes(bundle(Path(sys.argv[1]).read_bytes()))
