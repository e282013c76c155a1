"""Objects of the old server as the new one stores them: checked by its definitions, with the metadata that they had.

What a client could not create is not taken over either. Source: ``kube-api.md`` 2.2; ``porch-api.md`` 2.5.
"""

import copy
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from apiserver.machinery.definition import Definition
from apiserver.resources.config import repository_definition
from apiserver.resources.core import config_map_definition, namespace_definition, secret_definition
from apiserver.resources.custom.kinds import storage_definition
from apiserver.resources.custom.own import package_variant_crd, package_variant_set_crd
from apiserver.resources.object_metadata import client_metadata_causes
from apiserver.resources.porch import package_revision_definition
from apiserver.resources.reading import index_of, object_key, resource_key
from apiserver.resources.service_accounts import service_account_definition
from apiserver.resources.writing import check_valid
from krm.meta.errors import Invalid
from krm.meta.names import label_value_problem
from krm.meta.times import seconds_time
from storage.bodies import encode_body
from storage.interfaces import Mutation, ObjectStore, Op

Json = dict[str, Any]

ACTOR: Final = "porch-adopt"
"""Who the log says wrote it."""
KEPT: Final = ("labels", "annotations", "ownerReferences", "finalizers")
"""What of an object's metadata is its users'."""
MAX_TOLD: Final = 5
"""Problems of one object that are told."""
REVISION: Final = package_revision_definition()
DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"
"""Where the store keeps what others define."""
NAMESPACE: Final = namespace_definition()
SECRET: Final = secret_definition()
REPOSITORY: Final = repository_definition()


class Unfit(Exception):
    """An object cannot be stored; the message says which of its fields is wrong."""


@cache
def storable() -> Mapping[tuple[str, str], Definition]:
    """Return the kinds that are taken over as they are, by apiVersion and kind."""
    kinds = [
        SECRET,
        config_map_definition(),
        service_account_definition(),
        REPOSITORY,
        storage_definition(package_variant_crd()),
        storage_definition(package_variant_set_crd()),
    ]
    return {(kind.api_version, kind.kind): kind for kind in kinds}


def register_all(store: ObjectStore) -> None:
    """Tell a store of every kind that is read or written, but for package revisions."""
    for definition in (NAMESPACE, *storable().values()):
        store.register(resource_key(definition), index_of(definition), sealed=definition.sealed)
    store.register(DEFINITIONS, lambda _body: ({}, ()))


def kept_metadata(item: Json) -> Json:
    """Return name, namespace, UID, times, and what users said of an object, checked.

    Raises:
        Unfit: a value is of the wrong type or breaks a rule of all objects.
    """
    metadata = item["metadata"]
    uid = metadata.get("uid")
    if not isinstance(uid, str) or not uid or label_value_problem(uid):
        raise Unfit("metadata.uid is no UID")
    try:
        created, deleted = (seconds_time(metadata.get(key)) for key in ("creationTimestamp", "deletionTimestamp"))
    except (ValueError, AttributeError) as error:
        raise Unfit(f"metadata: {error}") from error
    kept: Json = {key: metadata.get(key) for key in ("name", "namespace")} | {"uid": uid}
    if created:
        kept["creationTimestamp"] = created
    users = {key: copy.deepcopy(metadata[key]) for key in KEPT if metadata.get(key)}
    if deleted and users.get("finalizers"):  # without them it is about to go, and nothing would remove it here
        kept |= {"deletionTimestamp": deleted, "deletionGracePeriodSeconds": 0}
    return kept | users


def check_types(definition: Definition, item: Json) -> None:
    """Refuse values of the wrong JSON type, and metadata that no client could write. Raises Unfit."""
    shape = {"apiVersion": definition.api_version, "kind": definition.kind, **item}
    if wrong := definition.compiled.type_errors(shape):
        raise Unfit("; ".join(wrong[:MAX_TOLD]))
    if causes := client_metadata_causes(definition, shape["metadata"]):
        raise Unfit("; ".join(f"{cause.field}: {cause.message}" for cause in causes[:MAX_TOLD]))


def stored_form(definition: Definition, item: Json) -> Json:
    """Return an object as it is stored, with its UID, times and generation; of a Repository without its status.

    Raises:
        Unfit: it is not what the kind's definition asks for.
    """
    check_types(definition, item)
    metadata = kept_metadata(item)
    if definition.generation:
        generation = item["metadata"].get("generation")
        metadata["generation"] = max(generation, 1) if isinstance(generation, int) else 1
    rest = {key: copy.deepcopy(value) for key, value in item.items() if key not in ("apiVersion", "kind", "metadata")}
    if definition is REPOSITORY:
        rest.pop("status", None)
    body = {"apiVersion": definition.api_version, "kind": definition.kind, "metadata": metadata, **rest}
    schema = definition.compiled
    schema.prune(body)
    schema.default(body)
    if definition.prepare:
        definition.prepare(body, None)
    try:
        check_valid(definition, schema, body, None)
    except Invalid as error:
        raise Unfit(error.message) from error
    return body


def creation(definition: Definition, body: Json) -> Mutation:
    """Build the mutation that creates an object; it fails where there is one of that name by then."""
    metadata = body["metadata"]
    key = object_key(definition, metadata.get("namespace"), metadata["name"])
    return Mutation(key, Op.CREATE, 0, metadata["uid"], encode_body(body), ACTOR)
