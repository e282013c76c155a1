"""From PackageVariantSet v1alpha1, which nobody serves any more, to v1alpha2.

Pure; what cannot be converted is left out and named. Source: ``variants.md`` 1.7.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from krm.variants.revision_choice import parse_number
from krm.variants.sets.validation import problems
from krm.variants.sets.vocabulary import API_VERSION, KIND
from krm.variants.vocabulary import GROUP

Json = dict[str, Any]

OLD_API_VERSION: Final = f"{GROUP}/v1alpha1"
_LABEL: Final = re.compile(r"""metadata\.labels(?:\[(["']?)([^\]"']+)\1\]|\.([A-Za-z0-9_-]+))""")
_SHARED: Final = ("adoptionPolicy", "deletionPolicy", "labels", "annotations")
"""Fields of the old set that are the template's now."""
_PARTS: Final = ("namePrefix", "baseName", "nameSuffix")
"""What an old package name is made of, in order."""
_DEFAULT: Final = object()
"""Stands for the name that a target's package has anyway."""
_KEPT_METADATA: Final = ("name", "generateName", "namespace", "labels", "annotations")


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a set comes to."""

    body: Json
    """The set in v1alpha2, without status and without what cannot be converted."""
    problems: tuple[str, ...]
    """What cannot be converted, and what is wrong with what was; empty where the new set does what the old one did."""


def is_old(body: object) -> bool:
    """Tell whether something is a PackageVariantSet of v1alpha1."""
    return isinstance(body, dict) and (body.get("apiVersion"), body.get("kind")) == (OLD_API_VERSION, KIND)


def convert(body: Json) -> Conversion:
    """Return a set of v1alpha1 in v1alpha2; any JSON below its ``spec`` gives problems, never an error."""
    return _Conversion(body).result()


@dataclass
class _Conversion:
    """The conversion of one set: problems come up wherever something is read."""

    body: Json
    problems: list[str] = field(default_factory=list)

    def result(self) -> Conversion:
        meta, old = _object(self.body.get("metadata")), _object(self.body.get("spec"))
        spec: Json = {}
        if old.get("upstream") is not None:
            spec["upstream"] = self._upstream(_object(old["upstream"]))
        shared = {name: old[name] for name in _SHARED if old.get(name) not in (None, "", {})}
        spec["targets"] = [
            target
            for place, one in enumerate(_list(old.get("targets")))
            for target in self._targets(_object(one), f"spec.targets[{place}]", shared)
        ]
        made = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {name: meta[name] for name in _KEPT_METADATA if name in meta},
            "spec": spec,
        }
        return Conversion(made, (*self.problems, *problems(made)))

    def _upstream(self, old: Json) -> Json:
        package = _object(old.get("package"))
        made = {"repo": package.get("repo"), "package": package.get("name"), "revision": old.get("revision")}
        ref = old.get("ref")
        if ref not in (None, "") and made["revision"] not in (None, ""):
            self.problems.append("spec.upstream has both revision and ref: ref is left out")
        elif isinstance(ref, str) and ref:
            tag = ref.removeprefix(f"{package.get('name')}/")
            made["revision" if parse_number(tag) > 0 else "workspaceName"] = tag
        return {name: value for name, value in made.items() if value not in (None, "")}

    def _targets(self, old: Json, path: str, shared: Json) -> Iterator[Json]:
        """Return what one old target comes to: one for each selector of objects."""
        named, objects = old.get("package"), _object(old.get("objects"))
        downstream: Json = {}
        if objects.get("repoName") is not None:
            self._put(downstream, "repo", [(objects["repoName"], f"{path}.objects.repoName")])
        if old.get("packageName") is not None:
            self._package_name(downstream, _object(old["packageName"]), _object(named).get("name"), path)
        if named is not None and any(name.endswith("Expr") for name in downstream):
            self.problems.append(f"{path}.packageName: there is no object whose field it could be")
            downstream = {}
        template = {**({"downstream": downstream} if downstream else {}), **shared}
        rest = {"template": template} if template else {}
        if named is not None:
            package = _object(named)
            names = {"packageNames": [package["name"]]} if package.get("name") else {}
            yield {"repositories": [{"name": package.get("repo") or "", **names}], **rest}
        if old.get("repositories") is not None:
            yield {"repositorySelector": _labels(_object(old["repositories"])), **rest}
        for place, selector in enumerate(_list(objects.get("selectors"))):
            where = f"{path}.objects.selectors[{place}]"
            yield {"objectSelector": self._selector(_object(selector), where), **rest}

    def _selector(self, old: Json, path: str) -> Json:
        namespace = _object(self.body.get("metadata")).get("namespace")
        if old.get("namespace") not in (None, "", namespace):
            self.problems.append(f"{path}.namespace: only objects in the namespace of the set can be selected")
        if old.get("annotations"):
            self.problems.append(f"{path}.annotations: objects cannot be selected by annotations")
        names = {name: old[name] for name in ("apiVersion", "kind", "name") if old.get(name)}
        return {**names, **_labels(_object(old.get("labelSelector")))}

    def _package_name(self, downstream: Json, old: Json, default: object, path: str) -> None:
        base: object = {"value": default} if isinstance(default, str) and default else _DEFAULT
        named = {"baseName": base, **old}
        parts = [(named[name], f"{path}.packageName.{name}") for name in _PARTS if named.get(name) is not None]
        if parts != [(base, f"{path}.packageName.baseName")]:
            self._put(downstream, "package", parts)

    def _put(self, downstream: Json, name: str, parts: list[tuple[Any, str]]) -> None:
        """Set a field of the template, or its expression, to texts and fields one after the other."""
        found = [
            ("packageDefault", False) if part is _DEFAULT else self._text(_object(part), path) for part, path in parts
        ]
        if None in found:
            return
        if all(is_text for _, is_text in filter(None, found)):
            downstream[name] = "".join(text for text, _ in filter(None, found))
        else:
            terms = [_literal(text) if is_text else text for text, is_text in filter(None, found)]
            downstream[f"{name}Expr"] = " + ".join(term for term in terms if term != "''")

    def _text(self, old: Mapping[str, Any], path: str) -> tuple[str, bool] | None:
        """Return a text, or an expression and False; None where neither can be made."""
        source = old.get("fromField")
        if source in (None, ""):
            return str(old.get("value") or ""), True
        if source == "metadata.name":
            return "target.name", False
        if isinstance(source, str) and (match := _LABEL.fullmatch(source)):
            return f"target.labels[{_literal(match[2] or match[3])}]", False
        self.problems.append(f"{path}.fromField: {source} cannot be read: only metadata.name and metadata.labels[…]")
        return None


def _labels(old: Json) -> Json:
    return {name: old[name] for name in ("matchLabels", "matchExpressions") if old.get(name)}


def _literal(text: str) -> str:
    """Write a text as a literal of CEL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{escaped}'"


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
