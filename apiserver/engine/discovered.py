"""From what Git holds to what the log should say: pure comparison, no input or output.

Source: ``porch-api.md`` 6.7; ``decisions.md`` 8 (which drafts may be dropped) and 9.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from apiserver.engine.package_index import COMMIT, LIFECYCLE, PACKAGE, REVISION
from apiserver.engine.recording import is_published, set_latest_label
from apiserver.engine.registered import RepositorySettings
from apiserver.engine.revision_body import new_revision, project_kptfile, set_self_lock, timestamp
from apiserver.rules.lifecycle import Lifecycle
from apiserver.rules.managed_labels import LATEST
from krm.api.revision_name import RevisionName, object_name_problem
from krm.package.kptfile import KptfileError, parse_kptfile
from storage.bodies import decode
from storage.git.discovery import FoundRevision
from storage.git.refs import short_ref
from storage.interfaces import Entry

Json = dict[str, Any]


@dataclass(slots=True)
class Difference:
    """What a sync has to write. ``written`` are whole objects by name; ``settled`` parcels that Git outran."""

    written: dict[str, Json] = field(default_factory=dict)
    gone: list[Entry] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)


def lifecycle_found(found: FoundRevision) -> Lifecycle:
    """Return the lifecycle that refs say; a deletion branch beside a tag makes it DeletionProposed."""
    return Lifecycle.DELETION_PROPOSED if found.deletion_proposed else Lifecycle(found.lifecycle)


def compare(
    settings: RepositorySettings,
    found: Iterable[FoundRevision],
    existing: Mapping[str, Entry],
    pending: Collection[str],
) -> Difference:
    """Compare discovered revisions with the log.

    ``pending`` are the revisions with an outbox parcel: what this server acknowledged and has not pushed wins over what
    Git says (a deleted draft whose branch is still there included), except that a tag of a revision that is still Proposed
    here proves that its approval reached the remote before a crash.
    """
    difference = Difference()
    for revision in found:
        name = RevisionName(settings.name, revision.package, revision.workspace)
        if object_name_problem(name) is not None:
            continue
        entry = existing.get(name.object_name)
        if name.object_name in pending:
            if entry is None or revision.revision <= 0 or is_published(entry):
                continue
            difference.settled.append(name.object_name)
        if entry is not None and _same(entry, revision):
            continue
        difference.written[name.object_name] = found_body(settings, name, revision, entry)
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
        if not tasks:
            body["spec"]["tasks"] = old["spec"].get("tasks") or []
    if found.revision:
        body["spec"]["revision"] = found.revision
    try:
        project_kptfile(body, parse_kptfile(found.kptfile))
    except KptfileError:
        project_kptfile(body, None)
    set_self_lock(
        body,
        url=settings.url,
        directory=settings.full_path(name.package),
        ref=short_ref(found.ref),
        commit=found.commit,
    )
    if lifecycle_found(found).is_published:
        body["status"]["publishTimestamp"] = timestamp(found.author_time)
        if found.author_email:
            body["status"]["publishedBy"] = found.author_email
    return body


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
