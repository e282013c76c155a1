"""What a body means: the same for two servers that answer alike, with what may vary learned or left out.

``resourceVersion``, times and ``managedFields`` vary; so do commits that are made during a case, but the commit that
stands for a recorded one must be the same wherever it appears. Files are compared as parsed documents with the order of
their keys, and comments (``decisions.md`` 11).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import yaml

ABSENT = "<absent>"
TIME = "<time>"
UID = "<uid>"
PIPELINE_GATE = "PackagePipelinePassed"
"""Our default gate and condition: extra in bodies, as the README of the recordings allows."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_COMMENT = re.compile(r"(?m)(?:^|(?<=\s))#.*$")


@dataclass(frozen=True)
class Difference:
    """One place where two bodies say different things."""

    place: str
    recorded: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.place}\n    upstream: {self.recorded!r}\n    ours:     {self.ours!r}"


@dataclass
class Learned:
    """What stands for the recorded commits and versions in our answers."""

    commits: dict[str, str] = field(default_factory=dict)
    versions: dict[tuple[str, str], str] = field(default_factory=dict)
    """By the object's name and the recorded resourceVersion; the latest answer counts."""

    def sent(self, request: Any) -> Any:
        """Return a recorded request with our versions and commits in it."""
        if not isinstance(request, dict):
            return request
        body = _replaced(request, self.commits)
        metadata = body.get("metadata") or {}
        recorded = (request.get("metadata") or {}).get("resourceVersion")
        if recorded is not None:
            metadata["resourceVersion"] = self.versions.get((metadata.get("name", ""), recorded), recorded)
        return body

    def differences(self, recorded: Any, ours: Any) -> Iterator[Difference]:
        """Compare two bodies that :func:`meaning` made, learning what stands for what."""
        yield from self._compare("", recorded, ours)

    def learn_versions(self, recorded: Any, ours: Any) -> None:
        """Remember the resourceVersions of two answers about the same object or objects."""
        for theirs, mine in _objects(recorded, ours):
            old, new = (it.get("metadata", {}) for it in (theirs, mine))
            if "resourceVersion" in old and "resourceVersion" in new:
                self.versions[new.get("name", ""), old["resourceVersion"]] = new["resourceVersion"]

    def _compare(self, place: str, recorded: Any, ours: Any) -> Iterator[Difference]:
        if isinstance(recorded, dict) and isinstance(ours, dict):
            for key in sorted({*recorded, *ours}):
                here = f"{place}.{key}" if place else key
                yield from self._compare(here, recorded.get(key, ABSENT), ours.get(key, ABSENT))
        elif isinstance(recorded, list) and isinstance(ours, list):
            for at, (theirs, mine) in enumerate(zip_longest(recorded, ours, fillvalue=ABSENT)):
                yield from self._compare(f"{place}[{at}]", theirs, mine)
        elif not self._same(place, recorded, ours):
            yield Difference(place, recorded, ours)

    def _same(self, place: str, recorded: Any, ours: Any) -> bool:
        if recorded != ours and place.endswith((".commit", ".gitCommitHash")) and ABSENT not in {recorded, ours}:
            return bool(self.commits.setdefault(recorded, ours) == ours)
        return bool(recorded == ours)


def _replaced(value: Any, texts: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(item, texts) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, texts) for item in value]
    return texts.get(value, value) if isinstance(value, str) else value


def _objects(recorded: Any, ours: Any) -> Iterable[tuple[Any, Any]]:
    """Return the objects in two answers in pairs: the answers themselves, or the items of two lists."""
    if not (isinstance(recorded, dict) and isinstance(ours, dict)):
        return []
    if "items" not in recorded:
        return [(recorded, ours)]
    mine = {item["metadata"]["name"]: item for item in ours.get("items") or []}
    return [(item, mine.get(item["metadata"]["name"], {})) for item in recorded["items"]]


def meaning(body: Any) -> Any:
    """Return what a decoded answer says, without what may vary."""
    if not isinstance(body, dict):
        return body
    if body.get("kind", "").endswith("List"):
        items = sorted(body["items"] or [], key=lambda item: str(item["metadata"]["name"]))
        said = {**body, "items": [meaning(item) for item in items]}
        said.pop("metadata", None)  # of a list: a version and a continuation
        return said
    if body.get("kind") == "Table":
        rows = sorted(body["rows"] or [], key=lambda row: str(row["cells"][0]))
        said = {**body, "rows": [{**row, "object": meaning(row["object"])} for row in rows]}
        said.pop("metadata", None)
        return said
    return _object_meaning(body)


def _object_meaning(body: dict[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = _without_times(body)
    metadata = said.get("metadata", {})
    for varies in ("managedFields", "resourceVersion"):
        metadata.pop(varies, None)
    if not _is_derived(metadata.get("uid", "")):
        metadata["uid"] = UID
    spec, status = said.get("spec", {}), said.get("status", {})
    if body.get("kind") == "PackageRevisionResources":
        spec["resources"] = {path: file_meaning(path, text) for path, text in spec.get("resources", {}).items()}
    if body.get("kind") == "PackageRevision":
        _drop_default(spec, "readinessGates", "conditionType")
        _drop_default(status, "conditions", "type")
    return said


def _is_derived(uid: str) -> bool:
    """Tell whether a uid follows from namespace and name, as those of packages do; others are drawn."""
    return len(uid) == 36 and uid[14] == "5"


def _drop_default(within: dict[str, Any], key: str, name: str) -> None:
    """Take our default gate or its condition out of a list, and the list if that was all."""
    if key in within:
        within[key] = [item for item in within[key] if item.get(name) != PIPELINE_GATE]
        if not within[key]:
            del within[key]


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_times(item) for item in value]
    return TIME if isinstance(value, str) and _TIME.fullmatch(value) else value


def file_meaning(path: str, text: str) -> Any:
    """Return the documents of a YAML file, each as its leaves in order, and its comments; the text of any other file.

    The order of a document's sections is a thing of its own, for we leave sections where they are and upstream moves
    them.
    """
    if not path.endswith((".yaml", ".yml", "Kptfile")):
        return text
    nodes = yaml.compose_all(text, Loader=yaml.SafeLoader)
    documents = [_document(node) for node in filter(None, nodes)]
    return {"documents": documents, "comments": comments(text)}


def _document(node: yaml.Node) -> Any:
    if not isinstance(node, yaml.MappingNode):
        return list(_leaves("", node))
    sections = {key.value: list(_leaves(key.value, value)) for key, value in node.value}
    return {"order": list(sections), "sections": sections}


def _leaves(place: str, node: yaml.Node) -> Iterator[dict[str, str]]:
    if isinstance(node, yaml.MappingNode) and node.value:
        for key, value in node.value:
            yield from _leaves(f"{place}.{key.value}", value)
    elif isinstance(node, yaml.SequenceNode) and node.value:
        for at, value in enumerate(node.value):
            yield from _leaves(f"{place}[{at}]", value)
    else:
        kind = node.tag.rpartition(":")[2]
        yield {place: node.value if kind == "str" else f"!{kind} {node.value}"}


def comments(text: str) -> list[str]:
    """Return the comments of a YAML text in order."""
    bare = list(text)
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        if isinstance(token, yaml.ScalarToken):
            start, end = token.start_mark.index, token.end_mark.index
            bare[start:end] = ["\n" if letter == "\n" else "x" for letter in bare[start:end]]
    return [found.strip() for found in _COMMENT.findall("".join(bare))]
