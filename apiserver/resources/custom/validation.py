"""Checks of a CustomResourceDefinition: its names, its versions taken together, and what an update may change.

Pure: decoded definitions in, causes out. What concerns one version is in ``version_validation.py``.
Source: ``kube-api.md`` 2.15.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final
from urllib.parse import urlsplit

from apiserver.machinery.definition import Json
from apiserver.resources.custom.schema_validation import schema_causes
from apiserver.resources.custom.version_validation import parts_causes, version_causes
from krm.meta.conditions import Condition, find_condition
from krm.meta.errors import Cause, forbidden_value, invalid_value, not_supported_value, required_value
from krm.meta.names import dns_1035_problem, subdomain_problem

MAX_VERSIONS: Final = 64
"""Versions of one definition; each is compiled and served. Kubernetes knows no bound, and its users need a handful."""
SCOPES: Final = ("Cluster", "Namespaced")
APPROVAL: Final = "api-approved.kubernetes.io"
"""Annotation without which a definition may not add to a group of Kubernetes itself."""
_PROTECTED: Final = ("k8s.io", "kubernetes.io")
_APPROVAL_FIELD: Final = f"metadata.annotations[{APPROVAL}]"
_APPROVAL_RULES: Final = "see https://github.com/kubernetes/enhancements/pull/1111"


def definition_causes(new: Json, old: Json | None) -> list[Cause]:
    """Return what is wrong with a definition, or with a change of one."""
    spec = new.get("spec") or {}
    found = chain(
        _object_name_causes(new, spec),
        _approval_causes(new, old),
        _spec_causes(spec),
        _names_causes(spec.get("names") or {}),
        _versions_causes(spec),
        schema_causes(new, old),
        _stored_version_causes(new, spec),
        _immutable_causes(spec, old) if old else (),
    )
    return list(found)


def _object_name_causes(crd: Json, spec: Json) -> Iterator[Cause]:
    name = crd["metadata"].get("name") or ""
    if name != f"{(spec.get('names') or {}).get('plural') or ''}.{spec.get('group') or ''}":
        yield invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def approval_condition(crd: Json) -> Condition | None:
    """Return what a definition in a group of Kubernetes itself says of its approval; None for all others."""
    text = _approval(crd)
    if not _is_protected(crd):
        return None
    approved = _is_address(text)
    return Condition(
        type="KubernetesAPIApprovalPolicyConformant",
        status="True" if approved else "False",
        reason="ApprovedAnnotation" if approved else "UnapprovedAnnotation",
        message=f"approved in {text}" if approved else f'not approved: "{text}"',
    )


def _is_protected(crd: Json) -> bool:
    group = (crd.get("spec") or {}).get("group") or ""
    return any(group == name or group.endswith(f".{name}") for name in _PROTECTED)


def _is_address(text: str) -> bool:
    try:
        address = urlsplit(text)
    except ValueError:
        return False
    return bool(address.scheme and address.netloc)


def _approval_causes(new: Json, old: Json | None) -> Iterator[Cause]:
    text = _approval(new)
    known = text.startswith("unapproved") or _is_address(text) or (old is not None and _approval(old) == text)
    if known or not _is_protected(new):
        return
    rule = f'protected groups must have approval annotation "{APPROVAL}"'
    if not text:
        yield required_value(_APPROVAL_FIELD, f"{rule}, {_APPROVAL_RULES}")
    else:
        detail = f'{rule} with either a URL or a reason starting with "unapproved", {_APPROVAL_RULES}'
        yield invalid_value(_APPROVAL_FIELD, text[:512], detail)


def _approval(crd: Json) -> str:
    return str((crd["metadata"].get("annotations") or {}).get(APPROVAL) or "")


def _spec_causes(spec: Json) -> Iterator[Cause]:
    group = spec.get("group") or ""
    if not group:
        yield required_value("spec.group")
    elif problem := subdomain_problem(group):
        yield invalid_value("spec.group", group[:512], problem)
    elif "." not in group:
        yield invalid_value("spec.group", group, "should be a domain with at least one dot")
    scope = spec.get("scope") or ""
    if not scope:
        yield required_value("spec.scope")
    elif scope not in SCOPES:
        yield not_supported_value("spec.scope", scope[:512], SCOPES)
    if spec.get("preserveUnknownFields"):
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        yield invalid_value("spec.preserveUnknownFields", True, detail)
    yield from _conversion_causes(spec.get("conversion") or {})


def _conversion_causes(conversion: Json) -> Iterator[Cause]:
    strategy = conversion.get("strategy") or ""
    if not strategy:
        yield required_value("spec.conversion.strategy")
    elif strategy != "None":
        yield not_supported_value("spec.conversion.strategy", strategy[:512], ["None"])
    elif conversion.get("webhook") is not None:
        yield forbidden_value("spec.conversion.webhook", "should not be set when strategy is not set to Webhook")


def _names_causes(names: Json) -> Iterator[Cause]:
    for key in ("plural", "singular"):
        yield from _name_causes(f"spec.names.{key}", names.get(key) or "")
    for key in ("kind", "listKind"):
        name = names.get(key) or ""
        if not name:
            yield required_value(f"spec.names.{key}")
        elif problem := dns_1035_problem(name.lower()):
            detail = f"may have mixed case, but should otherwise match: {problem}"
            yield invalid_value(f"spec.names.{key}", name[:512], detail)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid_value("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")
    for key in ("shortNames", "categories"):
        for index, name in enumerate(names.get(key) or ()):
            yield from _name_causes(f"spec.names.{key}[{index}]", name)


def _name_causes(field: str, name: str) -> Iterator[Cause]:
    if not name:
        yield required_value(field)
    elif problem := dns_1035_problem(name):
        yield invalid_value(field, name[:512], problem)


def _versions_causes(spec: Json) -> Iterator[Cause]:
    versions = spec.get("versions") or []
    if len(versions) > MAX_VERSIONS:
        detail = f"Too many: {len(versions)}: must have at most {MAX_VERSIONS} items"
        yield Cause("FieldValueTooMany", detail, "spec.versions")
        return
    if versions and (problem := dns_1035_problem(versions[0].get("name") or "")):
        # Kubernetes knows the first version by an older field, too.
        yield invalid_value("spec.version", (versions[0].get("name") or "")[:512], problem)
    for index, version in enumerate(versions):
        yield from version_causes(version, f"spec.versions[{index}]")
    yield from parts_causes(versions)
    names = [version.get("name") for version in versions]
    if len(set(names)) < len(names):
        yield invalid_value("spec.versions", _shown(spec.get("versions")), "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        yield invalid_value("spec.versions", _shown(spec.get("versions")), detail)


def _shown(versions: Sequence[Json] | None) -> list[Json] | None:
    """Return versions as messages show them: in Kubernetes' internal form, without what they have in common."""
    left_out = ("Schema", "Subresources", "AdditionalPrinterColumns", "SelectableFields")
    if versions is None:
        return None
    return [
        {
            "Name": version.get("name") or "",
            "Served": bool(version.get("served")),
            "Storage": bool(version.get("storage")),
            "Deprecated": bool(version.get("deprecated")),
            "DeprecationWarning": version.get("deprecationWarning"),
            **dict.fromkeys(left_out),
        }
        for version in versions
    ]


def _stored_version_causes(crd: Json, spec: Json) -> Iterator[Cause]:
    """A version in which objects may be stored must remain known, and the one they are stored in is among them."""
    versions = spec.get("versions") or ()
    known = {version.get("name") for version in versions}
    stored = (crd.get("status") or {}).get("storedVersions") or None
    if stored is None:
        yield invalid_value("status.storedVersions", None, "must have at least one stored version")
        return
    last = [version.get("name") for version in versions if version.get("storage")][-1:]
    if last and last[0] not in stored:
        yield invalid_value("status.storedVersions", stored, f"must have the storage version {last[0]}")
    for index, name in enumerate(stored):
        if name not in known:
            detail = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions "
                f"until a storage migration ensures no data remains persisted in {name} and removes {name} from "
                "status.storedVersions"
            )
            yield invalid_value(f"status.storedVersions[{index}]", name, detail)


def _immutable_causes(spec: Json, old: Json) -> Iterator[Cause]:
    """The resource's name never changes; what storage depends on does not once the kind has been served."""
    before, after = old["spec"], spec
    paths: list[tuple[str, ...]] = [("group",), ("names", "plural")]
    established = find_condition((old.get("status") or {}).get("conditions"), "Established")
    if established is not None and established.get("status") == "True":
        paths += [("scope",), ("names", "kind")]
    for path in paths:
        was: Any = before
        now: Any = after
        for name in path:
            was, now = (was or {}).get(name), (now or {}).get(name)
        if was != now:
            yield invalid_value(".".join(("spec", *path)), now, "field is immutable")
