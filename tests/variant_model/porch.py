"""The API server as one object: what is stored, what a request does to it, and the events that watchers see.

Package revisions follow the server's own rules (``apiserver.rules``) and toolchain; what Git, SQL and HTTP add to them is
left out. Requests are plain calls: each is done as a whole or raises and changes nothing.
"""

import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from apiserver.engine.draft_editing import _carried_edit
from apiserver.engine.package_index import referenced_upstream
from apiserver.engine.revision_body import new_revision, pipeline_condition, project_kptfile
from apiserver.rules.gate_fields import own_gates
from apiserver.rules.lifecycle import Door, Lifecycle, check_transition, parse_lifecycle
from apiserver.rules.managed_labels import LATEST
from apiserver.rules.readiness import PV_GATE, gates_holding, unready
from apiserver.rules.revision_changes import (
    check_new,
    check_published_spec,
    content_change,
    taken_metadata,
    with_client_metadata,
)
from apiserver.rules.task_changes import AppendedUpgrade, appended_upgrade
from krm.api.revision_name import RevisionName
from krm.meta.errors import STALE, AlreadyExists, Cause, Conflict, Forbidden, Invalid, NotFound, ResourceName
from krm.package.contents import File
from krm.package.init import init_package
from krm.package.kptfile import parse_kptfile
from krm.variants.vocabulary import WORKSPACE_PREFIX
from variant_model import packages
from variant_model.packages import Files, Json

REVISIONS, RESOURCES, VARIANTS = "packagerevisions", "packagerevisionresources", "packagevariants"
CONFIG_MAPS, REPOSITORIES, SETS = "configmaps", "repositories", "packagevariantsets"
DEFINITIONS = "customresourcedefinitions"
GROUPS = {
    REVISIONS: "porch.kpt.dev",
    RESOURCES: "porch.kpt.dev",
    VARIANTS: "config.porch.kpt.dev",
    SETS: "config.porch.kpt.dev",
    REPOSITORIES: "config.porch.kpt.dev",
    CONFIG_MAPS: "",
    DEFINITIONS: "apiextensions.k8s.io",
}
BRANCH = "main"
SHOWN_OF_FILES = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
"""Metadata of PackageRevisionResources."""
Key = tuple[str, str, str]
"""Plural, namespace, name."""


@dataclass(frozen=True)
class Event:
    """What a watcher of ``plural`` is told."""

    plural: str
    type: str
    body: Json


@dataclass(frozen=True)
class Write:
    """A request that changed something, or was refused as the server refuses what nobody should send."""

    verb: str
    plural: str
    name: str
    by: str
    subresource: str = ""


def copied(body: Json) -> Json:
    """Return what a client decodes."""
    copy: Json = orjson.loads(orjson.dumps(body))
    return copy


class PorchModel:
    """One namespace of a standalone server."""

    def __init__(self) -> None:
        self.objects: dict[Key, Json] = {}
        self.files: dict[str, Files] = {}
        """By commit."""
        self.pushed: list[tuple[tuple[str, str], str, str]] = []
        """What was ever pushed, newest first: repository and directory, ref, commit."""
        self.events: list[Event] = []
        self.newest = 0
        """The resourceVersion of the newest event."""
        self.told: Callable[[], None] = lambda: None
        """Called after each event."""
        self.writes: list[Write] = []
        self.published: dict[tuple[str, int], Files] = {}
        """What was published under a name as a revision, at that moment."""
        self.memo: dict[str, list[str]] = {}
        """What a test found out about the files of a commit."""
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self._versions = itertools.count(1)
        self._commits = itertools.count(1)

    # --- requests ----------------------------------------------------------------------------------

    def get(self, plural: str, namespace: str, name: str) -> Json:
        """Return an object; raises NotFound."""
        if plural == RESOURCES:
            return self._resources(self._stored(REVISIONS, namespace, name))
        return copied(self._stored(plural, namespace, name))

    def create(self, plural: str, namespace: str, body: Json, by: str = "user") -> Json:
        """Create an object; raises what the server answers."""
        body = copied(body)
        made = self._new_revision(namespace, body) if plural == REVISIONS else self._new_object(plural, namespace, body)
        self._put(plural, made, "ADDED")
        self.writes.append(Write("create", plural, made["metadata"]["name"], by))
        return copied(made)

    def update(self, plural: str, body: Json, subresource: str = "", by: str = "user") -> Json:
        """Replace an object; raises what the server answers. What changes nothing writes nothing."""
        body, meta = copied(body), body["metadata"]
        old = self._stored(REVISIONS if plural == RESOURCES else plural, meta["namespace"], meta["name"])
        self._check_version(plural, old, body)
        if plural == RESOURCES:
            new = self._saved(old, body)
        elif plural == REVISIONS:
            new = self._updated_revision(old, body, Door.APPROVAL if subresource else Door.MAIN)
        else:
            new = _updated_object(old, body, subresource)
        kept = REVISIONS if plural == RESOURCES else plural
        if _comparable(new) == _comparable(old):
            return self.get(plural, meta["namespace"], meta["name"])
        self.writes.append(Write("update", plural, meta["name"], by, subresource))
        if new["metadata"].get("deletionTimestamp") and not new["metadata"].get("finalizers"):
            self._remove(kept, new)
            return copied(new)
        self._put(kept, new, "MODIFIED")
        if kept == REVISIONS and new["spec"]["lifecycle"] != old["spec"]["lifecycle"]:
            self._follow_publication(new)
        return self.get(plural, meta["namespace"], meta["name"])

    def patch(
        self, plural: str, namespace: str, name: str, patch: Json, by: str = "user", subresource: str = ""
    ) -> Json:
        """Merge a patch in; raises what the server answers."""
        old = self.get(plural, namespace, name)
        wanted = _merge_patch(old, patch)
        return self.update(plural, wanted, subresource, by)

    def delete(
        self, plural: str, namespace: str, name: str, *, uid: str = "", version: str = "", by: str = "user"
    ) -> None:
        """Delete an object, or mark it where finalizers hold it; raises what the server answers."""
        old = copied(self._stored(plural, namespace, name))
        meta = old["metadata"]
        if (uid and uid != meta["uid"]) or (version and version != meta["resourceVersion"]):
            raise Conflict.of(_resource(plural), name, "Precondition failed")
        if plural == REVISIONS:
            self._check_deletable(old)
        if meta.get("finalizers"):
            if meta.get("deletionTimestamp"):
                return
            meta |= {"deletionTimestamp": self._time(), "generation": meta.get("generation", 0) + 1}
            self.writes.append(Write("delete", plural, name, by))
            self._put(plural, old, "MODIFIED")
            return
        self.writes.append(Write("delete", plural, name, by))
        self._remove(plural, old)

    # --- what a test looks at ------------------------------------------------------------------------

    def all(self, plural: str) -> list[Json]:
        """Return every object of a kind, not to be changed."""
        return [body for (kind, _, _), body in sorted(self.objects.items()) if kind == plural]

    def find(self, plural: str, name: str, namespace: str = "default") -> Json | None:
        """Return an object, not to be changed, or None."""
        return self.objects.get((plural, namespace, name))

    def contents(self, revision: Json) -> dict[str, str]:
        """Return the files of a revision as text."""
        return {path: file.data.decode() for path, file in self._files(revision).items()}

    def forge(self, plural: str, body: Json) -> None:
        """Store an object as it is, past every rule: what a restore from a backup does."""
        body = copied(body)
        kind = "MODIFIED" if self._key(plural, body) in self.objects else "ADDED"
        self._put(plural, body, kind)

    def vanish(self, plural: str, name: str, namespace: str = "default") -> None:
        """Drop an object, past finalizers."""
        self._remove(plural, self._stored(plural, namespace, name))

    def new_uid(self) -> str:
        """Return a uid that nothing has yet."""
        return str(uuid.UUID(int=next(self._versions)))

    # --- storage ---------------------------------------------------------------------------------------

    def _stored(self, plural: str, namespace: str, name: str) -> Json:
        found = self.objects.get((plural, namespace, name))
        if found is None:
            raise NotFound.of(_resource(plural), name)
        return found

    def _key(self, plural: str, body: Json) -> Key:
        return plural, body["metadata"]["namespace"], body["metadata"]["name"]

    def _put(self, plural: str, body: Json, kind: str) -> None:
        self.objects[self._key(plural, body)] = body
        self._note(plural, body, kind)

    def _remove(self, plural: str, body: Json) -> None:
        del self.objects[self._key(plural, body)]
        self._note(plural, copied(body), "DELETED")

    def _note(self, plural: str, body: Json, kind: str) -> None:
        self.newest = next(self._versions)
        body["metadata"]["resourceVersion"] = str(self.newest)
        self.events.append(Event(plural, kind, copied(body)))
        self.told()

    def _time(self) -> str:
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)

    def _check_version(self, plural: str, old: Json, body: Json) -> None:
        meta = body["metadata"]
        name = meta["name"]
        if not meta.get("resourceVersion"):
            cause = Cause("FieldValueInvalid", "must be specified for an update", "metadata.resourceVersion")
            raise Invalid.of(plural, GROUPS[plural], name, [cause])
        if meta["resourceVersion"] != old["metadata"]["resourceVersion"]:
            raise Conflict.of(_resource(plural), name, STALE)
        if meta.get("uid") and meta["uid"] != old["metadata"]["uid"]:
            raise Conflict.of(_resource(plural), name, "Precondition failed: UID")

    def _new_object(self, plural: str, namespace: str, body: Json) -> Json:
        meta = body["metadata"]
        meta["namespace"] = namespace
        if (plural, namespace, meta["name"]) in self.objects:
            raise AlreadyExists.of(_resource(plural), meta["name"])
        meta |= {"uid": self.new_uid(), "creationTimestamp": self._time(), "generation": 1}
        body.pop("status", None)
        return body

    # --- package revisions -------------------------------------------------------------------------------

    def _files(self, body: Json) -> Files:
        return self.files[body["status"]["selfLock"]["git"]["commit"]]

    def _resources(self, body: Json) -> Json:
        spec = body["spec"]
        shown = {"packageName": spec["packageName"], "workspaceName": spec["workspaceName"]}
        if spec.get("revision"):
            shown["revision"] = spec["revision"]
        return copied(
            {
                "apiVersion": "porch.kpt.dev/v1alpha1",
                "kind": "PackageRevisionResources",
                "metadata": {key: body["metadata"][key] for key in SHOWN_OF_FILES},
                "spec": {**shown, "repository": spec["repository"], "resources": self.contents(body)},
                "status": {"renderStatus": {"error": "", "result": {"metadata": {}, "exitCode": 0}}},
            }
        )

    def revisions_of(self, repository: str, package: str) -> Iterator[Json]:
        """Iterate over a package's revisions."""
        for body in self.all(REVISIONS):
            if (body["spec"]["repository"], body["spec"]["packageName"]) == (repository, package):
                yield body

    def _new_revision(self, namespace: str, wanted: Json) -> Json:
        check_new(wanted)
        spec = wanted["spec"]
        name = RevisionName(spec["repository"], spec["packageName"], spec["workspaceName"])
        repository = self.objects.get((REPOSITORIES, namespace, name.repository))
        if repository is None:
            raise NotFound.of(_resource(REPOSITORIES), name.repository)
        (task,) = spec["tasks"]
        if self.find(REVISIONS, name.object_name, namespace) is not None:
            raise AlreadyExists.of(_resource(REVISIONS), name.object_name)
        if task["type"] in ("clone", "init") and any(self.revisions_of(name.repository, name.package)):
            raise AlreadyExists(f"`clone` cannot create a new revision for package {name.package} that already exists")
        deployment = bool(repository["spec"].get("deployment"))
        files = self._starting_files(namespace, name, task, deployment=deployment)
        files = packages.with_metadata(name.object_name, files, wanted)
        files = self._rendered(name.object_name, files, keeps_failure=PV_GATE in (own_gates(wanted) or ()))
        body = new_revision(namespace, name, Lifecycle.DRAFT, [task], deployment=deployment)
        body["metadata"]["creationTimestamp"] = self._time()
        body["metadata"] = taken_metadata(body["metadata"], wanted["metadata"])
        self._hold(body, files)
        return body

    def _starting_files(self, namespace: str, name: RevisionName, task: Json, *, deployment: bool) -> Files:
        block = task[task["type"]]
        match task["type"]:
            case "init":
                return init_package(name.package, block.get("description") or "", [], "")
            case "edit":
                source = self._source(namespace, block["sourceRef"]["name"], name)
                self._refuse_unpublished(source, name)
                return self._files(source)
            case "clone":
                ref = block["upstreamRef"].get("upstreamRef") or {"git": block["upstreamRef"]["git"]}
                source, lock = self._upstream(namespace, ref, name)
                made = packages.cloned(source, name.package, lock, deployment=deployment)
            case "upgrade":
                local = self._source(namespace, block["localPackageRevisionRef"]["name"], name)
                self._refuse_unpublished(local, name)
                return self._upgraded(namespace, name, block, self._files(local), deployment=deployment)
            case other:
                raise AssertionError(other)
        assert not made.problem, made.problem
        return made.contents

    def _upgraded(self, namespace: str, name: RevisionName, block: Json, local: Files, *, deployment: bool) -> Files:
        old, _ = self._upstream(namespace, block["oldUpstreamRef"], name, may_follow=True)
        new, lock = self._upstream(namespace, block["newUpstreamRef"], name)
        assert block["strategy"] == "resource-merge"
        made = packages.merged(name.package, old, new, local, lock, deployment=deployment)
        if made.problem:
            raise _invalid(name.object_name, made.problem)
        return made.contents

    def _upstream(
        self, namespace: str, ref: Json, name: RevisionName, *, may_follow: bool = False
    ) -> tuple[Files, Json]:
        """Return the files of an upstream, and the lock of what is made of it."""
        if wanted := ref.get("name"):
            found = self._source(namespace, wanted, name)
            if _is_placeholder(found) and not may_follow:
                raise _invalid(name.object_name, "upstream revision may not be the placeholder")
            return self._files(found), found["status"]["selfLock"]["git"]
        git = ref["git"]
        place = git["repo"].removesuffix(".git"), git["directory"].strip("/")
        for (repo, directory), ref_name, commit in self.pushed:
            if (repo, directory) == place and git["ref"] in (ref_name, commit):
                return self.files[commit], {**git, "commit": commit}
        raise _invalid(name.object_name, f"no package at {git}")

    def _source(self, namespace: str, wanted: str, name: RevisionName) -> Json:
        found = self.objects.get((REVISIONS, namespace, wanted))
        if found is None:
            raise _invalid(name.object_name, f'cannot find package revision "{wanted}"')
        return found

    def _refuse_unpublished(self, source: Json, name: RevisionName) -> None:
        if source["spec"]["packageName"] != name.package or not Lifecycle(source["spec"]["lifecycle"]).is_published:
            raise _invalid(name.object_name, "source revision must be a published one of the same package")
        if _is_placeholder(source):
            raise _invalid(name.object_name, "source revision may not be the placeholder")

    def _rendered(self, name: str, files: Files, *, keeps_failure: bool) -> Files:
        done = packages.rendered(files)
        if done.failed and keeps_failure:
            return packages.failed_contents(name, done)
        if done.failed:
            raise packages.refuse_render(name, "error rendering package in kpt function pipeline. ", done)
        return dict(done.contents)

    def _hold(self, body: Json, files: Files) -> None:
        """Commit files as a revision's content."""
        commit = f"c{next(self._commits):039x}"
        self.files[commit] = files
        project_kptfile(body, parse_kptfile(files["Kptfile"].data), pipeline_condition(body))
        self._lock(body, "", commit)
        self._lock_branch(body)

    def _lock_branch(self, body: Json) -> None:
        """Say on which branch a draft or proposal is."""
        spec, commit = body["spec"], body["status"]["selfLock"]["git"]["commit"]
        folder = "proposed" if spec["lifecycle"] == "Proposed" else "drafts"
        self._lock(body, f"{folder}/{spec['packageName']}/{spec['workspaceName']}", commit)

    def _lock(self, body: Json, ref: str, commit: str) -> None:
        spec = body["spec"]
        git = {"repo": f"https://git.example/{spec['repository']}", "directory": spec["packageName"]}
        self.pushed.insert(0, ((git["repo"], git["directory"]), ref, commit))
        body["status"]["selfLock"] = {"type": "git", "git": {**git, "ref": ref, "commit": commit}}

    def _saved(self, old: Json, body: Json) -> Json:
        name = old["metadata"]["name"]
        if old["spec"]["lifecycle"] != "Draft":
            raise _invalid(name, "package must be Draft")
        files = {path: File(text.encode()) for path, text in body["spec"]["resources"].items()}
        packages.check_package(name, files)
        new = copied(old)
        done = self._rendered(name, files, keeps_failure=False)
        if done != self._files(old):
            self._hold(new, done)
        return new

    def _updated_revision(self, old: Json, wanted: Json, door: Door) -> Json:
        name = old["metadata"]["name"]
        stored = copied(old)
        current = Lifecycle(stored["spec"]["lifecycle"])
        desired = parse_lifecycle(wanted["spec"].get("lifecycle") or "", current, name)
        check_transition(current, desired, door, name)
        files, task = None, None
        if current is Lifecycle.DRAFT and door is Door.MAIN:
            files, task = self._edited(stored, wanted)
        future = copied(stored)
        if files is not None:
            project_kptfile(future, parse_kptfile(files["Kptfile"].data), pipeline_condition(future))
        gates, conditions = future["spec"]["readinessGates"], future["status"]["conditions"]
        deployment = bool(stored["status"].get("deployment"))
        if unmet := gates_holding(current, desired, gates, conditions, deployment=deployment):
            raise unready(name, current, unmet, conditions)
        body = stored
        if door is Door.MAIN:
            body = with_client_metadata(stored, wanted, name)
            if current.is_published:
                check_published_spec(stored, wanted, name)
        body["spec"]["lifecycle"] = str(desired)
        if files is not None:
            self._hold(body, files)
        if task is not None:
            body["spec"]["tasks"] = [task]
        if current is Lifecycle.PROPOSED and desired is Lifecycle.PUBLISHED:
            self._publish(body)
        elif desired is not current and not current.is_published:
            self._lock_branch(body)
        return body

    def _edited(self, stored: Json, wanted: Json) -> tuple[Files | None, Json | None]:
        name = stored["metadata"]["name"]
        edits = content_change(stored, wanted)
        upgrade = appended_upgrade(stored, wanted)
        if upgrade is not None:
            return self._upgraded_in_place(stored, edits, upgrade), upgrade.task
        if not edits.changes_kptfile:
            return None, None
        files = packages.edited_kptfile(
            name,
            self._files(stored),
            labels=edits.labels,
            annotations=edits.annotations,
            replace_metadata=True,
            readiness_gates=edits.gates,
            conditions=edits.conditions,
        )
        return self._rendered(name, files, keeps_failure=False) if edits.renders else files, None

    def _upgraded_in_place(self, stored: Json, edits: Any, upgrade: AppendedUpgrade) -> Files:
        meta, spec = stored["metadata"], stored["spec"]
        name = RevisionName(spec["repository"], spec["packageName"], spec["workspaceName"])
        deployment = bool(stored["status"].get("deployment"))
        files = self._upgraded(meta["namespace"], name, upgrade.block, self._files(stored), deployment=deployment)
        merged = parse_kptfile(files["Kptfile"].data)
        edit = _carried_edit(merged, stored, edits)
        waits = PV_GATE in (merged.readiness_gates if edit.readiness_gates is None else edit.readiness_gates)
        files = packages.edit_root_kptfile(meta["name"], files, edit)
        return self._rendered(meta["name"], files, keeps_failure=waits)

    def _publish(self, body: Json) -> None:
        spec = body["spec"]
        others = self.revisions_of(spec["repository"], spec["packageName"])
        spec["revision"] = max([other["spec"].get("revision", 0) for other in others] + [0]) + 1
        commit = body["status"]["selfLock"]["git"]["commit"]
        self._lock(body, f"{spec['packageName']}/v{spec['revision']}", commit)
        self.published[body["metadata"]["name"], spec["revision"]] = self.files[commit]

    def _follow_publication(self, body: Json) -> None:
        """Move the latest label and the placeholder, as the server does after an approval."""
        if body["spec"]["lifecycle"] != "Published":
            return
        spec = body["spec"]
        package = list(self.revisions_of(spec["repository"], spec["packageName"]))
        newest = max(package, key=lambda each: int(each["spec"].get("revision", 0)))
        for each in package:
            labels = dict(each["metadata"].get("labels") or {})
            if (LATEST in labels) != (each is newest):
                labels = (
                    {**labels, LATEST: "true"} if each is newest else {k: v for k, v in labels.items() if k != LATEST}
                )
                changed = copied(each)
                changed["metadata"]["labels"] = labels
                self._put(REVISIONS, changed, "MODIFIED")
        self._follow_branch(newest)

    def _follow_branch(self, newest: Json) -> None:
        spec = newest["spec"]
        name = RevisionName(spec["repository"], spec["packageName"], BRANCH)
        old, deployment = self.find(REVISIONS, name.object_name), bool(newest["status"].get("deployment"))
        body = copied(old) if old else new_revision("default", name, Lifecycle.PUBLISHED, [], deployment=deployment)
        body["spec"] |= {"revision": -1, "tasks": spec["tasks"]}
        commit = newest["status"]["selfLock"]["git"]["commit"]
        project_kptfile(body, parse_kptfile(self.files[commit]["Kptfile"].data), pipeline_condition(body))
        self._lock(body, BRANCH, commit)
        if old is None or _comparable(old) != _comparable(body):
            self._put(REVISIONS, body, "MODIFIED" if old else "ADDED")

    def _check_deletable(self, body: Json) -> None:
        name = body["metadata"]["name"]
        if body["spec"]["lifecycle"] == "Published":
            raise Forbidden.of(_resource(REVISIONS), name, "published PackageRevisions must be proposed for deletion")
        users = [
            each["metadata"]["name"]
            for each in self.all(REVISIONS)
            if referenced_upstream(each["spec"].get("tasks") or []) == name
        ]
        if users:
            raise Forbidden.of(_resource(REVISIONS), name, f"it is referenced as upstream by: {', '.join(users)}")


def _is_placeholder(body: Json) -> bool:
    return (body["spec"].get("revision"), body["spec"]["workspaceName"]) == (-1, BRANCH)


def is_controllers(body: Json) -> bool:
    """Tell whether a revision's workspace is one that the controller takes."""
    name: str = body["spec"]["workspaceName"]
    return name.startswith(WORKSPACE_PREFIX)


def _resource(plural: str) -> ResourceName:
    return ResourceName(plural, GROUPS[plural])


def _invalid(name: str, why: str) -> Invalid:
    cause = Cause("FieldValueInvalid", why, "spec.tasks[0]")
    return Invalid.of("PackageRevision", GROUPS[REVISIONS], name, [cause])


def _updated_object(old: Json, wanted: Json, subresource: str) -> Json:
    new = copied(old)
    if subresource == "status":
        new["status"] = wanted.get("status") or {}
        return new
    for part in ("labels", "annotations", "finalizers", "ownerReferences"):
        new["metadata"].pop(part, None)
        if wanted["metadata"].get(part):
            new["metadata"][part] = wanted["metadata"][part]
    for part in ("spec", "data"):
        if part in wanted and wanted[part] != new.get(part):
            new[part] = wanted[part]
            new["metadata"]["generation"] = new["metadata"].get("generation", 1) + 1
    return new


def _comparable(body: Json) -> Json:
    return {**body, "metadata": {k: v for k, v in body["metadata"].items() if k != "resourceVersion"}}


def _merge_patch(old: Any, patch: Any) -> Any:
    if not isinstance(patch, Mapping):
        return patch
    new = dict(old) if isinstance(old, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        else:
            new[key] = _merge_patch(new.get(key), value)
    return new
