"""Checks what clients say in the metadata of package revisions, by the rules of every Kubernetes object.

Revisions are not stored as other kinds are, so these rules meet them here. Source: ``kube-api.md`` 2.2.
"""

from typing import Any

from apiserver.machinery.definition import Definition
from apiserver.machinery.rest import Change, WriteOptions
from apiserver.resources.object_metadata import client_metadata_causes, finalizer_warnings
from apiserver.resources.writing import drop_repeated_owners
from apiserver.rules.managed_labels import with_managed
from krm.meta.errors import Invalid

Json = dict[str, Any]


def check_metadata(definition: Definition, wanted: Json, name: str, options: WriteOptions) -> None:
    """Check labels, annotations, finalizers and owners of a wanted revision; repeated owners are dropped, in place.

    Raises:
        Invalid: one cause per problem.
    """
    metadata = wanted.get("metadata") or {}
    drop_repeated_owners(metadata, options)
    # What the server names in an annotation has no bound but the package's own, and is not the client's to shorten.
    own = {**metadata, "annotations": with_managed(metadata.get("annotations"), None)}
    if causes := client_metadata_causes(definition, own):
        raise Invalid.of(definition.kind, definition.group, name, causes)


def warn_of_finalizers(definition: Definition, wanted: Json, options: WriteOptions) -> None:
    """Warn of finalizers that name no domain, as Kubernetes does when an object is created."""
    options.warnings.extend(finalizer_warnings(definition, wanted["metadata"].get("finalizers") or []))


def checked(change: Change, definition: Definition, name: str, options: WriteOptions) -> Change:
    """Return a change whose outcome has been checked."""

    def check(current: Json) -> Json:
        wanted = change(current)
        check_metadata(definition, wanted, name, options)
        return wanted

    return check
