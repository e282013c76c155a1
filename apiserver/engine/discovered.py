"""From what Git holds to what the log should say: pure comparison, no input or output.

Source: ``porch-api.md`` 6.7; ``decisions.md`` 8 (which drafts may be dropped) and 9.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from apiserver.engine.package_index import COMMIT, LIFECYCLE, PACKAGE, REVISION
from apiserver.engine.recording import is_placeholder, is_published, set_latest_label
from apiserver.engine.registered import RepositorySettings
from apiserver.engine.revision_body import (
    new_revision,
    pipeline_condition,
    project_kptfile,
    self_commit,
    set_self_lock,
    timestamp,
)
from apiserver.rules.lifecycle import Lifecycle
from apiserver.rules.managed_labels import LATEST, PUBLISHED_COMMIT
from apiserver.rules.pipeline_gate import failed, passed, waiting
from krm.api.revision_name import RevisionName, object_name_problem
from krm.package.kptfile import KptfileError, parse_kptfile
from storage.bodies import decode
from storage.git.discovery import FoundRevision
from storage.git.refs import TAGS, short_ref
from storage.interfaces import Entry

Json = dict[str, Any]


@dataclass(slots=True)
class Difference:
    """What a sync has to write. ``written`` are whole objects by name; ``settled`` parcels that Git outran.

    ``unnamed`` says of revisions that no object can be named after why that is.
    """

    written: dict[str, Json] = field(default_factory=dict)
    gone: list[Entry] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)


def lifecycle_found(found: FoundRevision) -> Lifecycle:
    """Return the lifecycle that refs say; a deletion branch beside a tag makes it DeletionProposed."""
    return Lifecycle.DELETION_PROPOSED if found.deletion_proposed else Lifecycle(found.lifecycle)


def compare(
    settings: RepositorySettings,
    found: Iterable[FoundRevision],
    existing: Mapping[str, Entry],
    pending: Collection[str],
    *,
    thorough: bool = False,
) -> Difference:
    """Compare discovered revisions with the log: by commit and lifecycle, or if ``thorough`` by everything that Git tells.

    ``pending`` are the revisions with an outbox parcel: what this server acknowledged and has not pushed wins over what
    Git says (a deleted draft whose branch is still there included), except that a tag of a revision that is still Proposed
    here proves that its approval reached the remote before a crash.
    """
    difference = Difference()
    for revision in found:
        name = RevisionName(settings.name, revision.package, revision.workspace)
        if (problem := object_name_problem(name)) is not None:
            difference.unnamed.append(f"{revision.ref}: {' '.join(problem.splitlines())}")
            continue
        entry = existing.get(name.object_name)
        if name.object_name in pending:
            if entry is None or revision.revision <= 0 or is_published(entry):
                continue
            difference.settled.append(name.object_name)
        same = entry is not None and _same(entry, revision)
        if same and not thorough:
            continue
        body = found_body(settings, name, revision, entry)
        if not (same and entry is not None and body == decode(entry)):
            difference.written[name.object_name] = body
    return difference


def _same(entry: Entry, found: FoundRevision) -> bool:
    return (
        entry.fields[COMMIT] == found.commit
        and entry.fields[LIFECYCLE] == lifecycle_found(found)
        and int(entry.fields[REVISION]) == found.revision
    )


def found_body(settings: RepositorySettings, name: RevisionName, found: FoundRevision, entry: Entry | None) -> Json:
    """Build the object of a discovered revision; what lives beside Git is kept from ``entry``."""
    tasks = [found.task] if found.task else []
    body = new_revision(settings.namespace, name, lifecycle_found(found), tasks, deployment=settings.deployment)
    if entry is not None:
        old = decode(entry)
        body["metadata"] = old["metadata"]
        if not tasks and old["spec"].get("tasks"):
            body["spec"]["tasks"] = old["spec"]["tasks"]
    if found.revision:
        body["spec"]["revision"] = found.revision
    _show_kptfile(body, found, entry)
    set_self_lock(
        body,
        url=settings.url,
        directory=settings.full_path(name.package),
        ref=short_ref(found.ref),
        commit=found.commit,
    )
    if entry is not None and moved_tag(body, entry):
        _keep_published_commit(body, entry)
    if lifecycle_found(found).is_published and _says_who_published(found):
        body["status"]["publishTimestamp"] = timestamp(found.author_time)
        by = _publisher(settings, found, entry)
        if by:
            body["status"]["publishedBy"] = by
    return body


def _publisher(settings: RepositorySettings, found: FoundRevision, entry: Entry | None) -> str:
    """Return who published: the author in Git, unless the repository gives all commits one author and the log knows better."""
    if settings.author is not None and entry is not None and entry.fields[COMMIT] == found.commit:
        return str(decode(entry)["status"].get("publishedBy") or "")
    return found.author_email


def moved_tag(body: Json, entry: Entry) -> bool:
    """Tell whether a revision that was published at one commit is shown at another: somebody moved its tag."""
    return is_published(entry) and not is_placeholder(body) and entry.fields[COMMIT] != self_commit(body)


def _keep_published_commit(body: Json, entry: Entry) -> None:
    """Say which commit was published; taken off again when the tag is moved back. Source: ``users.md`` 7.3 row 17."""
    annotations = dict(body["metadata"].get("annotations") or {})
    published = annotations.setdefault(PUBLISHED_COMMIT, entry.fields[COMMIT])
    if published == self_commit(body):
        del annotations[PUBLISHED_COMMIT]
    if annotations:
        body["metadata"]["annotations"] = annotations
    else:
        body["metadata"].pop("annotations", None)


def _says_who_published(found: FoundRevision) -> bool:
    """Tell whether somebody published this: a tag was set; content of a branch may have come with any commit."""
    return found.ref.startswith(TAGS) or found.task is not None


def _show_kptfile(body: Json, found: FoundRevision, entry: Entry | None) -> None:
    """Show what the Kptfile says; where it says nothing of a render, a published revision counts as passed, and what the
    server found out about the very same commit stays true (``decisions.md`` 14).
    """
    published = lifecycle_found(found).is_published
    pipeline = passed() if published else waiting()
    if entry is not None and entry.fields[COMMIT] == found.commit and is_published(entry) == published:
        pipeline = pipeline_condition(decode(entry))
    try:
        project_kptfile(body, parse_kptfile(found.kptfile), pipeline)
    except KptfileError as error:
        project_kptfile(body, None, pipeline if published else failed(str(error)))


def settle_latest(difference: Difference, existing: Mapping[str, Entry]) -> None:
    """Make the latest label right in every package that ``difference`` touches."""
    gone = {entry.name for entry in difference.gone}
    touched = {body["spec"]["packageName"] for body in difference.written.values()}
    touched |= {_package(entry) for entry in difference.gone}
    candidates: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for name, body in difference.written.items():
        if Lifecycle(body["spec"]["lifecycle"]).is_published and body["spec"].get("revision", 0) > 0:
            candidates[body["spec"]["packageName"]].append((body["spec"]["revision"], name))
    kept = [e for e in existing.values() if _package(e) in touched and e.name not in gone | difference.written.keys()]
    for entry in kept:
        if is_published(entry) and int(entry.fields[REVISION]) > 0:
            candidates[_package(entry)].append((int(entry.fields[REVISION]), entry.name))
    latest = {max(revisions)[1] for revisions in candidates.values()}
    for name, body in difference.written.items():
        set_latest_label(body, latest=name in latest)
    for entry in kept:
        if (LATEST in entry.labels) != (entry.name in latest):
            body = decode(entry)
            set_latest_label(body, latest=entry.name in latest)
            difference.written[entry.name] = body


def _package(entry: Entry) -> str:
    return entry.fields[PACKAGE]
