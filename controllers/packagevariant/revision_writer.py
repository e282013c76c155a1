"""Reads and writes package revisions and their files in one pass, so that nothing is done twice and nobody is overwritten.

Each write takes the resourceVersion that was read: whoever wrote in between is read again, not overwritten. A write of
unknown outcome is answered by looking. Source: ``variants.md`` 2.11 and I3, I5, I7.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, Final

from controllers.packagevariant.api import Api
from controllers.packagevariant.failures import Overtaken
from controllers.packagevariant.views import Views
from krm.client.errors import Unanswered
from krm.client.resources import PACKAGE_REVISION_RESOURCES, PACKAGE_REVISIONS
from krm.meta.errors import Conflict, NotFound
from krm.variants.revisions import DRAFT, Revision

Json = dict[str, Any]
Edit = Callable[[Json], Json]
"""Returns an object as it should be, equal to the given one where that is so already; the given one stays as it is."""

TRIES: Final = 3
"""Of one write, when others write at the same time."""


class RevisionWriter:
    """The writes of one pass. It remembers the bodies that it read, as long as they are current."""

    def __init__(self, api: Api, views: Views) -> None:
        self._api = api
        self._views = views
        self._bodies: dict[str, Json] = {}

    async def body(self, revision: Revision) -> Json:
        """Return the package revision as it is on the wire.

        Raises:
            Overtaken: It is gone.
        """
        known = self._bodies.pop(revision.name, None)
        if known is not None and known["metadata"].get("resourceVersion") == revision.resource_version:
            return known
        return await self._read(revision.namespace, revision.name)

    async def create(self, body: Json) -> Revision:
        """Create a package revision; what its errors mean for its name is for ``drafts.py``."""
        return self._taken(await self._api.create(PACKAGE_REVISIONS, body["metadata"]["namespace"], body))

    async def find(self, namespace: str, name: str) -> Json | None:
        """Return a package revision of that name, if there is one, from the server."""
        try:
            return await self._api.get(PACKAGE_REVISIONS, namespace, name)
        except NotFound:
            return None

    async def change(self, revision: Revision, edit: Edit, *, only_in: Collection[str] = ()) -> Revision:
        """Apply an edit to the current body and write it, if it changes anything; return what there is then.

        Repeating it is harmless: an edit that is already there writes nothing, which also settles a write of unknown outcome.
        ``only_in`` are the lifecycles in which it may be done.

        Raises:
            Overtaken: The revision is gone, or its lifecycle is another one.
            Conflict: Others write it all the time, or hold it.
            Unanswered: It may have been done, or may be done yet.
        """
        body: Json | None = await self.body(revision)
        failure: Conflict | Unanswered | None = None
        for _ in range(TRIES):
            body = body or await self._read(revision.namespace, revision.name)
            if only_in and (body["spec"].get("lifecycle") or DRAFT) not in only_in:
                raise Overtaken(f'package revision "{revision.name}" is {body["spec"].get("lifecycle")} now')
            if (wanted := edit(body)) == body:
                return self._kept(body)
            try:
                return self._taken(await self._api.update(PACKAGE_REVISIONS, wanted))
            except NotFound as error:
                raise Overtaken(f'package revision "{revision.name}" is gone') from error
            except (Conflict, Unanswered) as error:
                failure, body = error, None
        assert failure is not None  # noqa: S101 -- the loop ran
        raise failure

    async def files(self, revision: Revision) -> Json:
        """Return the PackageRevisionResources of a revision.

        Raises:
            Overtaken: It is gone.
        """
        try:
            return await self._api.get(PACKAGE_REVISION_RESOURCES, revision.namespace, revision.name)
        except NotFound as error:
            raise Overtaken(f'package revision "{revision.name}" is gone') from error

    async def save(self, files: Json, resources: Mapping[str, str]) -> Json:
        """Replace the files of a draft that were read as ``files``; the server renders them. Return its answer.

        Raises:
            Overtaken: Somebody wrote the revision since, or it is gone: what was computed is not what is wanted any more.
            Unanswered: It may have been done, or may be done yet: the next pass compares.
            Invalid: The package cannot be rendered, or may not be like this; nothing was changed.
        """
        metadata = files["metadata"]
        self._bodies.pop(metadata["name"], None)
        wanted = {**files, "spec": {**files["spec"], "resources": dict(resources)}}
        try:
            return await self._api.update(PACKAGE_REVISION_RESOURCES, wanted)
        except (Conflict, NotFound) as error:
            raise Overtaken(f'package revision "{metadata["name"]}": {error}') from error

    async def delete(self, revision: Revision) -> None:
        """Delete a package revision as it was decided on; one that is gone already is as good.

        Raises:
            Conflict: Somebody wrote it since.
            Forbidden: It may not be deleted: it was published meanwhile, or is somebody's upstream.
            Unanswered: It may have been done, or may be done yet.
        """
        with suppress(NotFound):
            await self._api.delete(
                PACKAGE_REVISIONS,
                revision.namespace,
                revision.name,
                uid=revision.uid,
                resource_version=revision.resource_version,
            )
        self._bodies.pop(revision.name, None)
        self._views.forget(revision.namespace, revision.name)

    def learned(self, body: Json) -> Revision:
        """Take over a revision of ours that the views did not have."""
        return self._taken(body)

    async def _read(self, namespace: str, name: str) -> Json:
        try:
            return await self._api.get(PACKAGE_REVISIONS, namespace, name)
        except NotFound as error:
            raise Overtaken(f'package revision "{name}" is gone') from error

    def _taken(self, body: Json) -> Revision:
        self._views.wrote(body)
        return self._kept(body)

    def _kept(self, body: Json) -> Revision:
        self._bodies[body["metadata"]["name"]] = body
        return Revision.of(body)
