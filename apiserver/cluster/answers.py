"""How a cluster that does not answer looks from where a store is expected."""

from collections.abc import Iterator
from contextlib import contextmanager

from krm.client.errors import NoAnswer
from krm.meta.errors import Conflict, NotFound, StatusError
from storage.interfaces import StoreUnavailable


class ClusterUnusable(Exception):
    """The server cannot do its work in this cluster; the message says what is missing, and who may give it."""


@contextmanager
def cluster_errors(what: str) -> Iterator[None]:
    """Turn what keeps the cluster from answering into the store's own error, but for Conflict and NotFound.

    Raises:
        StoreUnavailable: ``what`` could not be done.
    """
    try:
        yield
    except (Conflict, NotFound):
        raise
    except StatusError as error:
        raise StoreUnavailable(f"{what}: {error.message}") from error
    except NoAnswer as error:
        raise StoreUnavailable(f"{what}: {error}") from error
