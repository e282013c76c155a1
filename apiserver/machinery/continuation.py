"""The opaque token that leads from one page of a list to the next.

Laid out as upstream's (base64url of JSON with version, revision and start key), since tools peek into it.
Source: ``kube-api.md`` 2.5.
"""

import base64
import binascii
from dataclasses import dataclass

import orjson

from krm.meta.errors import BadRequest

_VERSION = "meta.k8s.io/v1"
_MAX_LENGTH = 2048
"""Characters of a token; names are limited, so ours stay below 800."""
LATEST = -1
"""The revision in a token that goes on at the current state, after its own was compacted."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """Where a list goes on: the snapshot's revision, and namespace and name of the last item returned."""

    rv: int
    namespace: str
    name: str

    def encode(self) -> str:
        """Return the token."""
        start = f"{self.namespace}/{self.name}\0"
        token = orjson.dumps({"v": _VERSION, "rv": self.rv, "start": start})
        return base64.urlsafe_b64encode(token).rstrip(b"=").decode()

    @classmethod
    def decode(cls, token: str) -> "Continuation":
        """Read a token.

        Raises:
            BadRequest: it is none of ours.
        """
        if len(token) > _MAX_LENGTH:
            raise BadRequest("invalid continue token: it is too long")
        try:
            padded = token.rstrip("=") + "=" * (-len(token.rstrip("=")) % 4)
            parsed = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
            version, rv, start = parsed["v"], parsed["rv"], parsed["start"]
            namespace, slash, name = start.removesuffix("\0").partition("/")
        except (binascii.Error, ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadRequest("invalid continue token: it cannot be decoded") from error
        if version != _VERSION or type(rv) is not int or (rv <= 0 and rv != LATEST) or not slash:
            raise BadRequest("invalid continue token: it was not made by this server")
        return cls(rv, namespace, name)
