"""Deleting a collection: every object that a list selects, each by the verb that deletes one.

Not atomic, as in Kubernetes: what was deleted before an error stays deleted. Source: ``kube-api.md`` 2.11.
"""

import asyncio
from dataclasses import replace

from apiserver.machinery.rest import DeleteOptions, Deleter, Item, ItemList, Lister, ListOptions, Scope
from krm.meta.errors import NotFound

_AT_ONCE = 32
"""Objects deleted at a time: they share transactions, and other writers get their turn in between."""


async def delete_collection(
    lister: Lister, deleter: Deleter, scope: Scope, selected: ListOptions, options: DeleteOptions
) -> ItemList:
    """Delete what ``selected`` lists and return that list, as it was; ``selected.limit`` bounds how many.

    An object that is gone meanwhile counts as deleted, so repeating the request is safe.

    Raises:
        StatusError: the first refusal, in list order; objects after it may be left.
    """
    page = await lister.list(scope, selected)
    for at in range(0, len(page.items), _AT_ONCE):
        batch = page.items[at : at + _AT_ONCE]
        outcomes = await asyncio.gather(
            *(_delete(deleter, scope, item, options) for item in batch), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
    return page


async def _delete(deleter: Deleter, scope: Scope, item: Item, options: DeleteOptions) -> None:
    where = scope if scope.namespace is not None else replace(scope, namespace=item.namespace or None)
    try:
        await deleter.delete(where, item.name, options)
    except NotFound:
        return
