"""The stored form of objects: JSON bytes without resourceVersion, to which the revision is added by splicing.

Storing the bytes that will be served keeps parsing and encoding out of every read; only the revision is not
known before the commit. Source: ``kube-api.md`` 5.2, ``decisions.md`` 6.
"""

from typing import Any

import orjson

from storage.interfaces import Entry, Json

MARK = b'"metadata":{'
"""Where the revision goes. Quotes inside JSON strings are escaped, so the first match is the real one."""


def encode_body(obj: Json) -> bytes:
    """Encode an object for the log: apiVersion, kind and metadata first, no resourceVersion.

    Raises:
        ValueError: apiVersion, kind or a metadata with something in it is missing.
        TypeError: a value is not JSON (orjson's own error).
    """
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "resourceVersion"}
    if not metadata or not obj.get("apiVersion") or not obj.get("kind"):
        raise ValueError("a stored object needs apiVersion, kind and a metadata that is not empty")
    ordered = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}
    return orjson.dumps(ordered | {key: value for key, value in obj.items() if key not in ordered})


def with_revision(body: bytes, rv: int) -> bytes:
    """Return a stored body with ``metadata.resourceVersion`` as its first metadata key.

    Raises:
        ValueError: the body was not made by :func:`encode_body`.
    """
    at = body.find(MARK)
    if at < 0:
        raise ValueError("a stored body has no metadata")
    at += len(MARK)
    return b'%b"resourceVersion":"%d",%b' % (body[:at], rv, body[at:])


def without_revision(body: bytes, rv: int) -> bytes:
    """Return a served body as it is stored: the inverse of :func:`with_revision`."""
    return body.replace(b'"resourceVersion":"%d",' % rv, b"", 1)


def decode(entry: Entry) -> Json:
    """Return a fresh, changeable copy of an entry's object, its resourceVersion included."""
    obj: dict[str, Any] = orjson.loads(entry.body)
    return obj
