"""A Kptfile of schema v1alpha1 or v1alpha2 as one of v1. Source: ``kpt.md`` 4.17 and 1.1."""

from collections.abc import Mapping, Sequence
from typing import Any

V1 = "kpt.dev/v1"
V1ALPHA1 = "kpt.dev/v1alpha1"
V1ALPHA2 = "kpt.dev/v1alpha2"
_METADATA = ("name", "namespace", "labels", "annotations")
_INFO = {
    "url": "site",
    "email": "emails",
    "license": "license",
    "shortDescription": "description",
    "tags": "keywords",
    "man": "man",
}
"""Fields of ``packageMetadata`` and what they are called in ``info``, in the order of v1."""
_LISTS = ("emails", "keywords")
_GIT = ("repo", "directory", "ref", "commit")
_CONVERTED = ("apiVersion", "kind", "metadata", "upstream", "packageMetadata", "openAPI", "inventory", "functions")

Json = dict[str, Any]


def converted_kptfile(data: Mapping[str, Any], mutators: Sequence[Mapping[str, Any]]) -> Json:
    """Return a v1alpha1 Kptfile as v1, with these mutators; what v1 has no place for is left out."""
    metadata = _map(data.get("metadata"))
    new: Json = {
        "apiVersion": V1,
        "kind": "Kptfile",
        "metadata": {key: value for key, value in metadata.items() if key in _METADATA},
    }
    git = _map(_map(data.get("upstream")).get("git"))
    if git:
        lock = {key: git[key] for key in _GIT if git.get(key)}
        source = {key: value for key, value in lock.items() if key != "commit"}
        new["upstream"] = {"type": "git", "git": source, "updateStrategy": "resource-merge"}
        if "commit" in lock:
            new["upstreamLock"] = {"type": "git", "git": lock}
    if info := _info(_map(data.get("packageMetadata"))):
        new["info"] = info
    if mutators:
        new["pipeline"] = {"mutators": [dict(mutator) for mutator in mutators]}
    if data.get("inventory"):
        new["inventory"] = data["inventory"]
    return new


def lost_fields(data: Mapping[str, Any]) -> list[str]:
    """Name what a v1alpha1 Kptfile has and v1 has no place for."""
    lost = [key for key in data if key not in _CONVERTED]
    lost += [f"packageMetadata.{key}" for key in _map(data.get("packageMetadata")) if key not in _INFO]
    lost += [f"metadata.{key}" for key in _map(data.get("metadata")) if key not in _METADATA]
    if "functions" in data:
        lost.append("functions")
    return lost


def _info(old: Mapping[str, Any]) -> Json:
    info: Json = {}
    for key, name in _INFO.items():
        value = old.get(key)
        if value:
            info[name] = [value] if name in _LISTS and not isinstance(value, list) else value
    return info


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
