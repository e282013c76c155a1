"""Whether a namespace is going, and with it everything in it but what is in Git. Source: ``decisions.md`` 4."""

from krm.meta.errors import ServiceUnavailable
from storage.bodies import decode
from storage.interfaces import Entry, ObjectKey, ObjectStore, StoreUnavailable


def is_terminating(store: ObjectStore, namespace: str) -> bool:
    """Tell whether a namespace is known to be deleted; whatever is deleted in it is only unregistered."""
    return _is_going(store.get(_key(namespace)))


async def is_terminating_now(store: ObjectStore, namespace: str) -> bool:
    """Ask the same of whoever has the namespaces, when it decides whether something leaves Git for ever.

    Another replica, or the cluster, may have deleted the namespace a moment ago, and the first to act on it is the one
    who asks us to delete.

    Raises:
        ServiceUnavailable: that cannot be told now; nothing may be deleted.
    """
    try:
        return is_terminating(store, namespace) or _is_going(await store.get_fresh(_key(namespace)))
    except StoreUnavailable as error:
        why = f"whether namespace {namespace} is being deleted cannot be told now ({error}); nothing was changed, try again"
        raise ServiceUnavailable(why, retry_after=1) from error


def _key(namespace: str) -> ObjectKey:
    return ObjectKey("namespaces", "", namespace)


def _is_going(entry: Entry | None) -> bool:
    return entry is not None and bool(decode(entry)["metadata"].get("deletionTimestamp"))
