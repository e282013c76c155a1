"""What mutations need to know of a Kptfile, leniently: whether the rest of it is right is the server's to say."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from krm.package.yaml_reader import YamlError, read_documents
from krm.variants.mutation_error import MutationError

Json = dict[str, Any]

KPTFILE = "Kptfile"
FUNCTION_LISTS = ("mutators", "validators")


@dataclass(frozen=True, slots=True)
class KptfileFacts:
    """The parts that mutations change; all scalars are text, as typed fields decode to."""

    pipeline: Mapping[str, list[Any]]
    """The lists of functions that there are."""
    gates: tuple[str, ...]
    conditions: list[Json]


def read_kptfile(texts: Mapping[str, str], named: str) -> KptfileFacts:
    """Read the root Kptfile of the package ``named`` (``namespace/name``).

    Raises:
        MutationError: there is none, it is not one YAML mapping, or a part to be changed has another form.
    """
    if KPTFILE not in texts:
        raise MutationError(f"\"{KPTFILE}\" not found in PackageRevisionResources '{named}'")
    try:
        documents = read_documents(texts[KPTFILE], as_text=True)
    except YamlError as error:
        raise MutationError(f"{KPTFILE}: {error}") from None
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise MutationError(f"{KPTFILE}: a Kptfile is one document that is a mapping")
    [data] = documents
    pipeline = _mapping(data, "pipeline")
    gates = _mappings(_mapping(data, "info"), "info.readinessGates")
    return KptfileFacts(
        pipeline={key: _list(pipeline, f"pipeline.{key}") for key in FUNCTION_LISTS if pipeline.get(key)},
        gates=tuple(str(gate.get("conditionType") or "") for gate in gates),
        conditions=_mappings(_mapping(data, "status"), "status.conditions"),
    )


def _mapping(data: Json, key: str) -> Json:
    value = data.get(key) or {}
    if not isinstance(value, dict):
        raise MutationError(f"{KPTFILE}: {key} is not a mapping")
    return value


def _list(section: Json, path: str) -> list[Any]:
    value = section.get(path.rpartition(".")[2]) or []
    if not isinstance(value, list):
        raise MutationError(f"{KPTFILE}: {path} is not a list")
    return value


def _mappings(section: Json, path: str) -> list[Json]:
    """Return a list of mappings without the nulls in it."""
    items = [item for item in _list(section, path) if item is not None]
    if not all(isinstance(item, dict) for item in items):
        raise MutationError(f"{KPTFILE}: {path} holds what is not a mapping")
    return items
