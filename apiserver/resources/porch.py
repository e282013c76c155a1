"""Definitions of PackageRevision and PackageRevisionResources: columns and selectable fields.

Source: ``porch-api.md`` 1.4, 1.5, 1.7 and 1.8.
"""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from apiserver.engine.package_index import (
    LIFECYCLE,
    PACKAGE,
    PACKAGE_LABELS,
    REPOSITORY,
    REVISION,
    WORKSPACE,
)
from apiserver.machinery.definition import Column, Definition
from apiserver.machinery.rest import Scope
from apiserver.machinery.schema import structural_schema
from apiserver.rules.lifecycle import Lifecycle
from apiserver.rules.managed_labels import LATEST
from krm.api.porch import PackageRevision, PackageRevisionResources
from krm.meta.errors import BadRequest
from krm.meta.selectors import FieldSelector, FieldTerm, LabelSelector
from storage.interfaces import Entry, Matches

Json = dict[str, Any]

GROUP, VERSION = "porch.kpt.dev", "v1alpha1"

_LABELS_PREFIX = "spec.packageMetadata.labels["


def package_revision_definition() -> Definition:
    """Define PackageRevision."""
    return Definition(
        group=GROUP,
        version=VERSION,
        kind="PackageRevision",
        plural="packagerevisions",
        singular="packagerevision",
        schema=structural_schema(PackageRevision),
        columns=(
            *_first_columns(),
            Column("Latest", "boolean", _is_latest, "Whether it is the latest published revision of its package."),
            Column("Lifecycle", "string", lambda obj: obj["spec"].get("lifecycle", ""), "Where it is in its life."),
            Column("Repository", "string", lambda obj: obj["spec"].get("repository", ""), "Name of its Repository."),
        ),
        selectable=dict.fromkeys(SELECTABLE, _never_extracted),
        generation=False,
        strategic_unlisted=True,
    )


def package_revision_resources_definition() -> Definition:
    """Define PackageRevisionResources."""
    return Definition(
        group=GROUP,
        version=VERSION,
        kind="PackageRevisionResources",
        plural="packagerevisionresources",
        singular="packagerevisionresources",
        schema=structural_schema(PackageRevisionResources),
        columns=(
            *_first_columns(),
            Column("Repository", "string", lambda obj: obj["spec"].get("repository", ""), "Name of its Repository."),
            Column("Files", "integer", lambda obj: len(obj["spec"].get("resources") or {}), "Number of text files."),
        ),
        selectable=dict.fromkeys(SELECTABLE, _never_extracted),
        generation=False,
        strategic_unlisted=True,
    )


def _first_columns() -> tuple[Column, ...]:
    return (
        Column("Name", "string", lambda obj: obj["metadata"]["name"], "Name of the package revision.", "name"),
        Column("Package", "string", lambda obj: obj["spec"].get("packageName", ""), "Path of the package."),
        Column("WorkspaceName", "string", lambda obj: obj["spec"].get("workspaceName", ""), "Line of edits."),
        Column(
            "Revision", "integer", lambda obj: obj["spec"].get("revision", 0), "0 until published, -1 for a branch."
        ),
    )


def _is_latest(obj: Json) -> bool:
    return (obj["metadata"].get("labels") or {}).get(LATEST) == "true"


def _never_extracted(_obj: Json) -> str:
    """Stand for an extractor: these fields are in the index (``package_index.revision_fields``)."""
    return ""


def _equals(position: int) -> Callable[[str], Matches]:
    def make(value: str) -> Matches:
        return lambda entry: entry.fields[position] == value

    return make


def _package_is(value: str) -> Matches:
    """A path matches itself; a name without slash matches the last segment in any directory ([QUIRK] of 1.8)."""
    if "/" in value:
        return lambda entry: entry.fields[PACKAGE] == value
    return lambda entry: entry.fields[PACKAGE].rpartition("/")[2] == value


def _revision_is(value: str) -> Matches:
    digits = value.removeprefix("v")
    wanted = digits if digits.lstrip("-").isdecimal() else "-1"
    return lambda entry: entry.fields[REVISION] == wanted


SELECTABLE: Mapping[str, Callable[[str], Matches]] = {
    "spec.revision": _revision_is,
    "spec.packageName": _package_is,
    "spec.repository": _equals(REPOSITORY),
    "spec.workspaceName": _equals(WORKSPACE),
    "spec.lifecycle": _equals(LIFECYCLE),
}


def select_revisions(
    _definition: Definition, scope: Scope, labels: LabelSelector, fields: FieldSelector
) -> tuple[Matches | None, str | None]:
    """Turn both selectors into one test on index tuples (None: everything matches), and the namespace to scan.

    Raises:
        BadRequest: a field, an operator or a value is not supported, with upstream's sentences (1.8).
    """
    namespace = scope.namespace
    tests: list[Matches] = []
    if not labels.empty:
        tests.append(lambda entry: labels.matches(entry.labels))
    lifecycles = [term.value for term in fields.terms if term.field == "spec.lifecycle"]
    for term in fields.terms:
        _check_term(term)
        if term.field != "spec.lifecycle":
            tests.append(_term_test(term, namespace))
    if lifecycles:
        wanted = frozenset(lifecycles)
        tests.append(lambda entry: entry.fields[LIFECYCLE] in wanted)
    narrowed = namespace or fields.exact("metadata.namespace")
    if not tests:
        return None, narrowed
    if len(tests) == 1:
        return tests[0], narrowed
    return (lambda entry: all(test(entry) for test in tests)), narrowed


def _check_term(term: FieldTerm) -> None:
    known = term.field in SELECTABLE or term.field in ("metadata.name", "metadata.namespace")
    if not known and not (term.field.startswith(_LABELS_PREFIX) and term.field.endswith("]")):
        raise BadRequest(f'"{term.field}" is not a known field selector')
    if term.operator not in ("=", "=="):
        raise BadRequest(f'unsupported fieldSelector operator "{term.operator}" for field "{term.field}"')
    if not term.value:
        raise BadRequest(f'unsupported fieldSelector value "" for field "{term.field}" with operator "{term.operator}"')
    if term.field == "spec.lifecycle" and term.value not in set(Lifecycle):
        raise BadRequest(f'unsupported fieldSelector value "{term.value}" for field "spec.lifecycle"')


def _term_test(term: FieldTerm, namespace: str | None) -> Matches:
    if term.field == "metadata.name":
        return lambda entry: entry.name == term.value
    if term.field == "metadata.namespace":
        if namespace is not None and namespace != term.value:
            raise BadRequest(f'conflicting namespaces specified: "{namespace}" and "{term.value}"')
        return lambda entry: entry.namespace == term.value
    if term.field.startswith(_LABELS_PREFIX):
        return _package_label(term.field[len(_LABELS_PREFIX) : -1], term.value)
    return SELECTABLE[term.field](term.value)


def _package_label(key: str, value: str) -> Matches:
    if not key:
        raise BadRequest('a label key is required in "spec.packageMetadata.labels[<key>]"')

    def matches(entry: Entry) -> bool:
        labels = entry.fields[PACKAGE_LABELS]
        return bool(labels) and orjson.loads(labels).get(key) == value

    return matches
