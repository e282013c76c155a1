"""One repository: what Git holds, what the old server shows, and what the new one has, made into package revisions.

Git says what a revision is (files, lifecycle, number, task); the old server says who it is (UID, times, labels, annotations,
owners, finalizers). Where they differ on the former Git counts and the difference is told. Pure but for reading Git objects.
Source: ``porch-api.md`` 2 and 6; ``decisions.md`` 8.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from apiserver.adoption.objects import KEPT, REVISION, Unfit, check_types, kept_metadata
from apiserver.engine.discovered import Difference, found_body, settle_latest
from apiserver.engine.recording import create_mutation, is_placeholder, update_mutation
from apiserver.engine.registered import RepositorySettings
from apiserver.engine.revision_body import lifecycle_of, self_commit
from apiserver.rules.managed_labels import LATEST, MANAGED_ANNOTATIONS, with_latest, with_managed
from krm.api.revision_name import RevisionName, object_name_problem
from storage.bodies import decode
from storage.git.discovery import FoundRevision
from storage.interfaces import Entry, Mutation
from storage.outbox import OutboxChange

Json = dict[str, Any]

NOT_PUSHED: Final = "not-pushed"
"""What upstream's database cache shows as the commit of a draft whose files are in its database alone (``porch-api.md`` 6.7)."""
_RANK: Final = {"Draft": 0, "Proposed": 1, "Published": 2}
_UNPUBLISHED: Final = ("Draft", "Proposed")


@dataclass(slots=True)
class Comparison:
    """The outcome for one repository: whole objects by name, and what is to be told by object name.

    ``unpushed`` are items whose files have to be asked for, with an older form of them in Git, if any; ``parcels`` what those
    become that Git is to be told of.
    """

    written: dict[str, Json] = field(default_factory=dict)
    existing: Mapping[str, Entry] = field(default_factory=dict)
    there: int = 0
    notes: list[tuple[str, str]] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)
    unpushed: list[tuple[Json, FoundRevision | None]] = field(default_factory=list)
    parcels: dict[str, OutboxChange] = field(default_factory=dict)

    def mutations(self, actor: str) -> Iterator[Mutation]:
        """Settle which revisions are the latest, and yield what has to be written."""
        settle_latest(Difference(written=self.written), self.existing)
        for name, body in self.written.items():
            entry = self.existing.get(name)
            yield create_mutation(body, actor) if entry is None else update_mutation(entry, body, actor)


def compare(
    settings: RepositorySettings,
    found: Iterable[FoundRevision],
    shown: Iterable[Json],
    existing: Mapping[str, Entry],
    pending: Collection[str],
) -> Comparison:
    """Compare a repository's revisions; ``pending`` are those that the new server has edits of which Git does not know."""
    result = Comparison(existing=existing)
    in_git = dict(_by_name(settings, found, result))
    items = dict(_checked(settings, shown, result))
    for name, revision in in_git.items():
        item, entry = items.get(name), existing.get(name)
        if name in pending:
            result.there += 1
        elif item is not None and entry is None and _is_unpushed(item):
            result.unpushed.append((item, revision))
        else:
            _take(settings, name, revision, item, result)
    for name, item in items.items():
        if name not in in_git and name not in existing:
            _take_without_git(name, item, result)
        elif name not in in_git:
            result.there += 1
    return result


def _by_name(
    settings: RepositorySettings, found: Iterable[FoundRevision], result: Comparison
) -> Iterator[tuple[str, FoundRevision]]:
    """Yield what Git holds by object name; where branches are left over of a workspace, its furthest form."""
    for revision in sorted(found, key=lambda one: _RANK[one.lifecycle]):
        name = RevisionName(settings.name, revision.package, revision.workspace)
        if (problem := object_name_problem(name)) is None:
            yield name.object_name, revision
        else:
            result.notes.append((revision.ref, f"no object can be named after it: {' '.join(problem.split())}"))


def _checked(settings: RepositorySettings, shown: Iterable[Json], result: Comparison) -> Iterator[tuple[str, Json]]:
    """Yield the old server's objects that are what they say they are."""
    seen: set[str] = set()
    for item in shown:
        name = str(item["metadata"]["name"])
        try:
            check_types(REVISION, item)
            kept_metadata(item)
            _check_identity(settings, name, item)
        except Unfit as error:
            result.problems.append((name[:253], str(error)))
            continue
        if name in seen:
            result.problems.append((name, "the old server shows it twice"))
        seen.add(name)
        yield name, item


def _check_identity(settings: RepositorySettings, name: str, item: Json) -> None:
    spec = item.get("spec") or {}
    if item["metadata"].get("namespace") != settings.namespace or spec.get("repository") != settings.name:
        raise Unfit(f"it is not of {settings.key}")
    if "packageName" not in spec:  # a PackageRev tells no more than the name
        return
    composed = RevisionName(settings.name, str(spec["packageName"]), str(spec.get("workspaceName") or ""))
    if composed.object_name != name or object_name_problem(composed):
        raise Unfit(
            f"package {spec['packageName']!s:.100} in workspace {spec.get('workspaceName')!s:.63} has another name"
        )


def _is_unpushed(item: Json) -> bool:
    lock = ((item.get("status") or {}).get("selfLock") or {}).get("git") or {}
    return lock.get("commit") == NOT_PUSHED and _lifecycle(item) in _UNPUBLISHED


def _lifecycle(item: Json) -> str:
    return str((item.get("spec") or {}).get("lifecycle") or "Draft")


def _take(
    settings: RepositorySettings, name: str, revision: FoundRevision, item: Json | None, result: Comparison
) -> None:
    """Make the object of a revision that Git holds."""
    entry = result.existing.get(name)
    composed = RevisionName(settings.name, revision.package, revision.workspace)
    body = found_body(settings, composed, revision, entry)
    if item is None:
        if entry is None:
            result.notes.append((name, "is in Git, and the old server does not show it: it has no metadata"))
    elif not _identify(name, body, item, entry, result):
        return
    else:
        result.notes += [(name, one) for one in _differences(body, item)]
    if entry is not None and body == decode(entry):
        result.there += 1
    else:
        result.written[name] = body


def _take_without_git(name: str, item: Json, result: Comparison) -> None:
    """Decide on a revision that the old server shows and Git does not hold."""
    spec = item.get("spec") or {}
    if "packageName" not in spec:
        result.notes.append((name, "its PackageRev is left over: Git holds no such revision"))
    elif spec.get("revision") == -1:
        result.notes.append((name, "is not taken over: its branch, or its package there, is gone from Git"))
    elif _lifecycle(item) in _UNPUBLISHED:
        result.unpushed.append((item, None))
    else:
        result.problems.append(
            (name, "it is published, and its tag is not in Git: push the tag again, or delete it there")
        )


def _identify(name: str, body: Json, item: Json, entry: Entry | None, result: Comparison) -> bool:
    """Give a revision the metadata that it had; tell whether it may be written."""
    wanted = kept_metadata(item)
    if entry is None:
        give_metadata(body, item)
        return True
    if entry.uid != wanted["uid"]:
        said = f"the new server holds another object of this name (UID {entry.uid}, there {wanted['uid']})"
        result.problems.append((name, f"{said}; delete it here, or register the repository under another name"))
        return False
    ours, theirs = users_metadata(decode(entry)["metadata"]), users_metadata(wanted)
    if not ours or ours == theirs:
        give_metadata(body, item)
    else:
        changed = ", ".join(key for key in KEPT if ours.get(key) != theirs.get(key))
        result.notes.append((name, f"has {changed} of its own here, which are kept"))
    return True


def give_metadata(body: Json, item: Json) -> None:
    """Give a package revision, in place, the metadata of ``item``; what the server itself says there stays."""
    old, wanted = body["metadata"], kept_metadata(item)
    wanted["labels"] = with_latest(wanted.get("labels"), latest=LATEST in (old.get("labels") or {}))
    wanted["annotations"] = with_managed(wanted.get("annotations"), old.get("annotations"))
    kept = {key: value for key, value in old.items() if key not in KEPT}
    body["metadata"] = kept | {key: value for key, value in wanted.items() if value not in ({}, [], None)}


def users_metadata(metadata: Json) -> Json:
    """Return what users said of a package revision: without labels and annotations that are the server's."""
    labels = with_latest(metadata.get("labels"), latest=False)
    annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k not in MANAGED_ANNOTATIONS}
    values = {**metadata, "labels": labels, "annotations": annotations}
    return {key: values[key] for key in KEPT if values.get(key)}


def _differences(body: Json, item: Json) -> Iterator[str]:
    """Yield what Git says otherwise than the old server."""
    spec = item.get("spec") or {}
    if "packageName" not in spec:
        return
    now = lifecycle_of(body)
    if _lifecycle(item) != now:
        yield f"is {now} in Git, and {_lifecycle(item)} at the old server"
    number, there = body["spec"].get("revision", 0), spec.get("revision") or 0
    if number != there:
        yield f"is revision {number} in Git, and {there} at the old server"
    lock = ((item.get("status") or {}).get("selfLock") or {}).get("git") or {}
    commit = str(lock.get("commit") or "")
    if commit and commit != NOT_PUSHED and not is_placeholder(body) and commit != self_commit(body):
        yield f"is at {self_commit(body)[:12]} in Git, and at {commit[:12]} at the old server: it was changed meanwhile"


def line_of(body: Json) -> str:
    """Return how the report shows a package revision that is taken over."""
    spec, metadata = body["spec"], body["metadata"]
    number = f" v{spec['revision']}" if (spec.get("revision") or 0) > 0 else ""
    users = users_metadata(metadata)
    has = ", ".join(f"{len(users[key])} {key}" for key in KEPT if key in users)
    return f"{metadata['name']}  {spec['lifecycle']}{number}{f'  ({has})' if has else ''}"
