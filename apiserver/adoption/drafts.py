"""Drafts whose files no remote has: upstream's database cache keeps them to itself until they are published.

Their files are asked of the old server and become a commit of ours, which the new server pushes like any draft that was saved
here. Source: ``porch-api.md`` 5.1 and 6.7; ``decisions.md`` 8.
"""

from collections.abc import Mapping
from typing import Any, Final

from apiserver.adoption.objects import Unfit
from apiserver.adoption.revisions import give_metadata
from apiserver.engine.draft_writing import preview, show_kptfile
from apiserver.engine.drafts import seen_refs
from apiserver.engine.registered import RegisteredRepository
from apiserver.engine.revision_body import new_revision, set_self_lock
from apiserver.engine.tree_changes import commit_contents
from apiserver.rules.lifecycle import Lifecycle
from krm.api.revision_name import RevisionName
from krm.package.contents import Contents, ContentsError, File, check_contents
from storage.git.commits import CREATING_TASKS
from storage.git.errors import UnsafePath
from storage.git.refs import draft_ref, proposed_ref, short_ref
from storage.outbox import OutboxChange

Json = dict[str, Any]

MAX_BYTES: Final = 256 << 20
"""Of the files of all drafts together, which are in memory until they are written."""


def contents_of(files: Mapping[str, Any]) -> Contents:
    """Return files as a package. Raises Unfit: one is no text, its path is unsafe, or there is no Kptfile."""
    if "Kptfile" not in files:
        raise Unfit("its files at the old server have no Kptfile")
    try:
        contents = {path: File(text.encode()) for path, text in files.items()}
        check_contents(contents)
    except (AttributeError, UnicodeEncodeError) as error:
        raise Unfit("the old server shows files that are no text") from error
    except ContentsError as error:
        raise Unfit(f"its files at the old server cannot be stored: {error}") from error
    return contents


def adopted_draft(
    repository: RegisteredRepository, item: Json, contents: Contents, parent: str | None
) -> tuple[Json, OutboxChange]:
    """Return a draft or proposal as it is stored, with the commit that is to be pushed. Runs in a thread.

    ``parent`` is the commit that its edits lie on: an older form of it in Git, or the registered branch's head.

    Raises:
        Unfit: a path is not safe to write.
    """
    settings, spec = repository.settings, item["spec"]
    name = RevisionName(settings.name, spec["packageName"], spec["workspaceName"])
    lifecycle = Lifecycle(spec.get("lifecycle") or "Draft")
    tasks = [task for task in (spec.get("tasks") or [])[:1] if task.get("type") in CREATING_TASKS]
    body = new_revision(settings.namespace, name, lifecycle, tasks, deployment=settings.deployment)
    give_metadata(body, item)
    task = tasks[0] if tasks else {"type": "push"}
    try:
        commit, objects = commit_contents(
            repository.objects, settings, name, contents, parent=parent, task=task, user=""
        )
    except UnsafePath as error:
        raise Unfit(f"its files at the old server cannot be stored: {error}") from error
    show_kptfile(body, contents)
    path = settings.full_path(name.package)
    ref = draft_ref if lifecycle is Lifecycle.DRAFT else proposed_ref
    set_self_lock(body, url=settings.url, directory=path, ref=short_ref(ref(path, name.workspace)), commit=commit)
    seen = seen_refs(repository, path, preview(body, None))
    return body, OutboxChange(settings.key, name.object_name, objects=objects, seen=seen)
