"""Which package revisions and packages a request wants: label and field selectors as tests on what the index holds.

Nothing here decodes an object. Source: ``porch-api.md`` 1.8.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from apiserver.engine.package_index import (
    LIFECYCLE,
    PACKAGE,
    PACKAGE_LABELS,
    REPOSITORY,
    REVISION,
    WORKSPACE,
    Package,
)
from apiserver.machinery.definition import Definition
from apiserver.machinery.rest import Scope
from apiserver.rules.lifecycle import Lifecycle
from krm.meta.errors import BadRequest
from krm.meta.selectors import FieldSelector, FieldTerm, LabelSelector
from storage.interfaces import Entry, Matches

Json = dict[str, Any]
PackageMatches = Callable[[Package], bool]

_NAME, _NAMESPACE = "metadata.name", "metadata.namespace"
_LABELS_PREFIX: Final = "spec.packageMetadata.labels["


def select_revisions(
    _definition: Definition, scope: Scope, labels: LabelSelector, fields: FieldSelector
) -> tuple[Matches | None, str | None]:
    """Turn both selectors into one test on index tuples (None: everything matches), and the namespace to scan.

    All terms must hold, but of several lifecycles one.

    Raises:
        BadRequest: a field, an operator or a value is not supported, with upstream's sentences (1.8).
    """
    tests: list[Matches] = []
    if not labels.empty:
        wanted_labels = labels.predicate()
        tests.append(lambda entry: wanted_labels(entry.labels))
    lifecycles = frozenset(term.value for term in fields.terms if term.field == "spec.lifecycle")
    if lifecycles:
        tests.append(lambda entry: entry.fields[LIFECYCLE] in lifecycles)
    for term in fields.terms:
        _check_term(term)
        if term.field not in ("spec.lifecycle", _NAMESPACE):
            tests.append(_revision_test(term))
    return _all_of(tests), _namespace(scope, fields)


def select_packages(
    scope: Scope, labels: LabelSelector, fields: FieldSelector
) -> tuple[PackageMatches | None, str | None]:
    """Turn both selectors into one test on packages (None: everything matches), and the namespace to scan.

    Packages have no labels, so only a selector of what is missing finds any.

    Raises:
        BadRequest: a field or a value is not supported.
    """
    tests: list[PackageMatches] = []
    if not labels.empty:
        selected = labels.matches({})
        tests.append(lambda _package: selected)
    for term in fields.terms:
        if term.field not in SELECTABLE_OF_PACKAGES and term.field not in (_NAME, _NAMESPACE):
            known = ", ".join(f'"{field}"' for field in (_NAME, _NAMESPACE, *SELECTABLE_OF_PACKAGES))
            raise BadRequest(f'"{term.field}" is not a known field selector: only {known}')
        _check_comparison(term)
        if term.field != _NAMESPACE:
            tests.append(_package_test(term))
    return _all_of(tests), _namespace(scope, fields)


def _all_of(tests: list[Callable[[Any], bool]]) -> Callable[[Any], bool] | None:
    if len(tests) <= 1:
        return tests[0] if tests else None
    return lambda one: all(test(one) for test in tests)


def _namespace(scope: Scope, fields: FieldSelector) -> str | None:
    """Return the one namespace that the URL and all terms name, or None for every namespace."""
    namespace = scope.namespace
    for term in fields.terms:
        if term.field == _NAMESPACE:
            if namespace is not None and namespace != term.value:
                raise BadRequest(f'conflicting namespaces specified: "{namespace}" and "{term.value}"')
            namespace = term.value
    return namespace


# --- revisions ----------------------------------------------------------------------------------


def _check_term(term: FieldTerm) -> None:
    known = term.field in SELECTABLE or term.field in (_NAME, _NAMESPACE)
    if not known and not (term.field.startswith(_LABELS_PREFIX) and term.field.endswith("]")):
        raise BadRequest(f'"{term.field}" is not a known field selector')
    _check_comparison(term)
    if term.field == "spec.lifecycle" and term.value not in set(Lifecycle):
        raise BadRequest(f'unsupported fieldSelector value "{term.value}" for field "spec.lifecycle"')


def _check_comparison(term: FieldTerm) -> None:
    if term.operator != "=":
        raise BadRequest(f'unsupported fieldSelector operator "{term.operator}" for field "{term.field}"')
    if not term.value:
        raise BadRequest(f'unsupported fieldSelector value "" for field "{term.field}" with operator "{term.operator}"')


def _revision_test(term: FieldTerm) -> Matches:
    if term.field == _NAME:
        return lambda entry: entry.name == term.value
    if term.field.startswith(_LABELS_PREFIX):
        return _package_label(term.field[len(_LABELS_PREFIX) : -1], term.value)
    return SELECTABLE[term.field](term.value)


def _package_label(key: str, value: str) -> Matches:
    if not key:
        raise BadRequest('a label key is required in "spec.packageMetadata.labels[<key>]"')
    pair = orjson.dumps({key: value})[1:-1].decode()

    def matches(entry: Entry) -> bool:
        labels = entry.fields[PACKAGE_LABELS]
        # The pair may also be the end of a longer key; most revisions do not get as far as being decoded.
        return pair in labels and orjson.loads(labels).get(key) == value

    return matches


def _equals(position: int) -> Callable[[str], Matches]:
    def make(value: str) -> Matches:
        return lambda entry: entry.fields[position] == value

    return make


def _package_is(value: str) -> Matches:
    named = _path_is(value)
    return lambda entry: named(entry.fields[PACKAGE])


def _path_is(value: str) -> Callable[[str], bool]:
    """A path matches itself; a name without slash matches the last segment in any directory ([QUIRK] of 1.8)."""
    if "/" in value:
        return lambda path: path == value
    return lambda path: path == value or path.endswith("/" + value)


def _revision_is(value: str) -> Matches:
    """``3`` and ``v3`` are the third revision, 0 is what is not published; what is no number stands for -1."""
    try:
        wanted = str(int(value.removeprefix("v")))
    except ValueError:
        wanted = "-1"
    return lambda entry: entry.fields[REVISION] == wanted


SELECTABLE: Final[Mapping[str, Callable[[str], Matches]]] = {
    "spec.revision": _revision_is,
    "spec.packageName": _package_is,
    "spec.repository": _equals(REPOSITORY),
    "spec.workspaceName": _equals(WORKSPACE),
    "spec.lifecycle": _equals(LIFECYCLE),
}
"""Field of a revision → what makes a test of a wanted value. Name, namespace and package labels are selectable, too."""


# --- packages -----------------------------------------------------------------------------------


SELECTABLE_OF_PACKAGES: Final = ("spec.packageName", "spec.repository")
"""Fields of a package that are selectable besides its name and namespace."""


def _package_test(term: FieldTerm) -> PackageMatches:
    if term.field == _NAME:
        return lambda package: package.name == term.value
    if term.field == "spec.repository":
        return lambda package: package.repository == term.value
    named = _path_is(term.value)
    return lambda package: named(package.path)
