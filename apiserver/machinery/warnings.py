"""``Warning`` headers: what a client should know about a request that succeeded all the same.

Source: ``kube-api.md`` 2.12.
"""

from collections.abc import Iterable, Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_BUDGET = 4096
"""Characters of all warnings together; beyond it each is cut to ``_CUT``."""
_CUT = 256


def warning_headers(warnings: Iterable[str]) -> list[tuple[bytes, bytes]]:
    """Return one header per different warning; control characters and quotes are made safe."""
    unique = list(dict.fromkeys(warnings))
    if sum(map(len, unique)) > _BUDGET:
        unique = [text[:_CUT] for text in unique][: _BUDGET // _CUT]
    return [(b"warning", f'299 - "{_escaped(text)}"'.encode()) for text in unique]


class Warned:
    """An ASGI application: another one's answer, with more headers."""

    def __init__(self, answer: ASGIApp, headers: Sequence[tuple[bytes, bytes]]) -> None:
        self._answer = answer
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_warned(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *self._headers]}
            await send(message)

        await self._answer(scope, receive, send_warned)


def _escaped(text: str) -> str:
    printable = "".join(character if character.isprintable() else " " for character in text)
    return printable.replace("\\", "\\\\").replace('"', '\\"')
