"""The core kinds as a standalone server serves them: resources over one store, with their subresources."""

from collections.abc import Mapping

from apiserver.machinery.definition import Definition
from apiserver.machinery.rest import Resource, Served
from apiserver.resources.converted_events import ConvertedEvents
from apiserver.resources.core import config_map_definition, secret_definition
from apiserver.resources.event_kinds import event_definition
from apiserver.resources.leases import lease_definition
from apiserver.resources.namespaces import NamespaceFinalize, Namespaces
from apiserver.resources.objects import NamespaceCheck, StatusOf, StoredObjects
from apiserver.resources.service_accounts import service_account_definition
from storage.interfaces import ObjectStore


def core_kinds(
    store: ObjectStore, namespace_check: NamespaceCheck, account_subresources: Mapping[str, Resource] | None = None
) -> list[Served]:
    """Return the core kinds, Lease and the Events of events.k8s.io, Namespace first.

    ``account_subresources`` are what service accounts have besides, such as ``token``.
    """
    namespaces = Namespaces(store)

    def stored(definition: Definition) -> StoredObjects:
        return StoredObjects(definition, store, namespace_check=namespace_check)

    accounts = stored(service_account_definition())
    return [
        Served(
            namespaces,
            {"status": StatusOf(namespaces), "finalize": NamespaceFinalize(store)},
            deleted_as_object=True,
        ),
        Served(stored(secret_definition())),
        Served(stored(config_map_definition())),
        Served(accounts, dict(account_subresources or {}), deleted_as_object=True),
        Served(stored(lease_definition())),
        Served(stored(event_definition())),
        Served(ConvertedEvents(store, namespace_check=namespace_check)),
    ]
