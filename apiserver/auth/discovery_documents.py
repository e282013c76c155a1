"""How others can check service-account tokens: the issuer's OpenID configuration and its public keys.

Source: ``kube-api.md`` 3.6 (c); paths, fields and media types are kube-apiserver's.
"""

from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from apiserver.auth.signing_keys import ALGORITHM, SigningKeys

CONFIGURATION_PATH = "/.well-known/openid-configuration"
KEYS_PATH = "/openid/v1/jwks"

_CACHED = {"Cache-Control": "public, max-age=3600"}


def issuer_documents(issuer: str, keys: SigningKeys) -> list[Route]:
    """Return the routes of the two documents of one issuer."""
    configuration = {
        "issuer": issuer,
        "jwks_uri": f"{issuer.rstrip('/')}{KEYS_PATH}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
    }
    return [
        _fixed(CONFIGURATION_PATH, configuration, "application/json"),
        _fixed(KEYS_PATH, keys.key_set(), "application/jwk-set+json"),
    ]


def _fixed(path: str, content: Any, media_type: str) -> Route:
    body = orjson.dumps(content)

    async def serve(_request: Request) -> Response:
        return Response(body, headers={**_CACHED, "Content-Type": media_type})

    return Route(path, serve, methods=["GET"])
