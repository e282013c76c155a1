"""What a function that writes its items anew must not lose: the order of keys, and comments.

In-process functions change the resource's own data and need none of this. Source: ``kpt.md`` 2.8.
"""

from typing import Any

from krm.functions.resource import Resource


def restore(resource: Resource, new_data: dict[str, Any]) -> None:
    """Give ``resource`` the data that a function returned for it, its keys in the order they had.

    Keys that are new go to the end of their mapping, in the order the function gave them. Comments stay
    with what they stand at, because the resource's text is edited, not written anew.
    """
    resource.data = in_order_of(new_data, resource.data)


def in_order_of(data: Any, before: Any) -> Any:
    """Return ``data`` with the keys of its mappings in the order of ``before``; list items pair by place."""
    if isinstance(data, dict):
        if not isinstance(before, dict):
            return data
        kept = {key: in_order_of(data[key], value) for key, value in before.items() if key in data}
        return {**kept, **{key: value for key, value in data.items() if key not in kept}}
    if isinstance(data, list) and isinstance(before, list):
        pairs = zip(data, before, strict=False)
        return [in_order_of(item, old) for item, old in pairs] + data[len(before) :]
    return data
