"""Whether a namespace is going, and with it everything in it but what is in Git. Source: ``decisions.md`` 4."""

from storage.bodies import decode
from storage.interfaces import ObjectKey, ObjectStore


def is_terminating(store: ObjectStore, namespace: str) -> bool:
    """Tell whether a namespace is being deleted; whatever is deleted in it is only unregistered."""
    entry = store.get(ObjectKey("namespaces", "", namespace))
    return entry is not None and bool(decode(entry)["metadata"].get("deletionTimestamp"))
