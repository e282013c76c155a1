"""Why a draft exists and what it changes, for the reviewers of it: in short, and as a patch.

Source: ``variants.md`` 6.8; the form is that of ``PackageVariant.status.pendingChange``.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from krm.package.contents import File
from krm.package.documents import is_resource_file, read_resources
from krm.package.merge.package_diff import patch
from krm.package.resource_identity import Identity, identity_of
from krm.package.yaml_reader import YamlError, same

Json = dict[str, Any]

MAX_FILES: Final = 50
"""Paths in a summary."""
MAX_RESOURCES: Final = 50
MAX_DETAIL: Final = 500
"""Characters of one explanation."""
MAX_COMPACT: Final = 4096
"""Bytes of a summary that is an annotation."""
MAX_READ: Final = 256 << 10
"""Characters of files that are read for their resources, of each side; whoever waits for a summary waits for this."""
MAX_DIFF: Final = 1 << 20
"""Characters of a patch."""
_CUTS = (20, 10, 5, 2, 1, 0)
"""Items of each list, tried in turn until a summary is small enough."""
_ORDER = ("added", "modified", "removed")


def summarize(
    before: Mapping[str, str],
    after: Mapping[str, str],
    *,
    draft: str,
    base: str,
    trigger: str,
    detail: str = "",
    conflicts: Sequence[str] = (),
) -> Json:
    """Return what a draft changes, bounded however much that is: of much, some resources are not looked for.

    Args:
        before: The files of the base; none for a new package.
        after: The files of the draft.
        draft: Name of the draft.
        base: Name of the package revision that it is compared with, empty for a new package.
        trigger: Initial, UpstreamChanged, SpecChanged or InjectionChanged.
        detail: The trigger in more words.
        conflicts: What the merge of an upgrade had to decide, one sentence each; listed first.
    """
    files = _changed_files(before, after)
    paths = [(change, path) for change in _ORDER for path in files[change]]
    shown = {change: [path for one, path in paths[:MAX_FILES] if one == change] for change in _ORDER}
    resources: list[Json] = [{"change": "conflict", "detail": _short(text)} for text in conflicts]
    resources += _changed_resources(before, after, [path for _, path in paths])
    omitted = max(len(paths) - MAX_FILES, 0) + max(len(resources) - MAX_RESOURCES, 0)
    summary = {
        "draft": draft,
        "base": base,
        "trigger": trigger,
        "triggerDetail": _short(detail),
        "files": {change: listed for change, listed in shown.items() if listed},
        "resources": resources[:MAX_RESOURCES],
        "omitted": omitted,
    }
    return {key: value for key, value in summary.items() if value or key == "trigger"}


def compact(summary: Json) -> str:
    """Return a summary as JSON of at most ``MAX_COMPACT`` bytes, with fewer files and resources if need be."""
    text = _dumped(summary)
    for most in _CUTS:
        if len(text.encode()) <= MAX_COMPACT:
            return text
        text = _dumped(_cut(summary, most))
    if len(text.encode()) <= MAX_COMPACT:
        return text
    # Names of package revisions are short; only what is none could get here.
    return _dumped({"trigger": summary["trigger"][:MAX_DETAIL], "omitted": _count(summary)})


def read_compact(text: str) -> Json:
    """Return the summary that an annotation holds; what is none is an empty one, since anybody may write there."""
    try:
        summary = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(summary, dict):
        return {}
    files = summary.get("files")
    listed = (
        {change: paths for change in _ORDER if isinstance(paths := files.get(change), list)}
        if isinstance(files, dict)
        else {}
    )
    return {**summary, "files": listed}


def text_diff(before: Mapping[str, str], after: Mapping[str, str], *, most: int = MAX_DIFF) -> str:
    """Return a patch that turns the files ``before`` into those ``after``, cut behind ``most`` characters."""
    lines: list[str] = []
    size = 0
    for line in patch(_contents(before), _contents(after)):
        size += len(line)
        if size > most:
            lines.append(f"… the rest is left out: the patch has more than {most} characters\n")
            break
        lines.append(line)
    return "".join(lines)


def _changed_files(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, list[str]]:
    return {
        "added": sorted(after.keys() - before.keys()),
        "modified": sorted(path for path in before.keys() & after.keys() if before[path] != after[path]),
        "removed": sorted(before.keys() - after.keys()),
    }


def _changed_resources(before: Mapping[str, str], after: Mapping[str, str], paths: Sequence[str]) -> list[Json]:
    """Return the resources that differ; one that only moved to another of the changed files does not."""
    old, new = dict(_resources(before, paths)), dict(_resources(after, paths))
    changes = [("added", one) for one in new.keys() - old.keys()]
    changes += [("modified", one) for one in new.keys() & old.keys() if not same(old[one], new[one])]
    changes += [("removed", one) for one in old.keys() - new.keys()]
    ordered = sorted(changes, key=lambda change: (_ORDER.index(change[0]), str(change[1])))
    return [{"kind": one.kind, "name": one.name, "change": change} for change, one in ordered]


def _resources(texts: Mapping[str, str], paths: Sequence[str]) -> Iterator[tuple[Identity, Any]]:
    left = MAX_READ
    for path in paths:
        if path not in texts or not is_resource_file(path) or len(texts[path]) > left:
            continue  # it is named as a file
        left -= len(texts[path])
        try:
            _, documents, _ = read_resources(path, texts[path].encode())
        except YamlError:
            continue
        for document in documents:
            if isinstance(document.data, dict):
                identity = identity_of(document.data)
                if identity.kind and identity.name:
                    yield identity, document.data


def _cut(summary: Json, most: int) -> Json:
    files = {change: paths[:most] for change, paths in summary.get("files", {}).items()}
    resources = summary.get("resources", ())[:most]
    cut = {**summary, "files": {change: paths for change, paths in files.items() if paths}, "resources": resources}
    cut["omitted"] = _count(summary) - _count({**cut, "omitted": 0})
    return {key: value for key, value in cut.items() if value or key == "trigger"}


def _count(summary: Json) -> int:
    """Count the files and resources of a summary, those that it leaves out as well."""
    listed = sum(map(len, summary.get("files", {}).values())) + len(summary.get("resources", ()))
    return listed + int(summary.get("omitted", 0))


def _contents(texts: Mapping[str, str]) -> dict[str, File]:
    return {path: File(text.encode()) for path, text in texts.items()}


def _short(text: str) -> str:
    return text if len(text) <= MAX_DETAIL else f"{text[: MAX_DETAIL - 1]}…"


def _dumped(summary: Json) -> str:
    return json.dumps(summary, ensure_ascii=False, separators=(",", ":"))
