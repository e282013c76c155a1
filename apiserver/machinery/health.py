"""Health endpoints, ``/version`` and the index of paths; none of them needs a user.

``/livez`` says whether restarting would help, so it never looks at the database; ``/readyz`` says
whether to send requests here, and fails as soon as shutdown begins. Reasons go to the log only.
Source: ``kube-api.md`` 1.4 and 1.5.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from inspect import isawaitable
from typing import Final

import orjson
import structlog
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

log = structlog.get_logger()

Check = Callable[[], bool | Awaitable[bool]]
"""Tells whether all is well; does not raise. One that waits for something fails after ``CHECK_SECONDS``."""
CHECK_SECONDS = 2.0
"""Seconds a check may take; probes are not patient."""

LIVE_CHECKS: Final = ("ping", "log")
"""What ``/livez`` looks at: only what this process is by itself."""
NO_SNIFF: Final = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache, private"}


class Health:
    """Answers the health endpoints from named checks.

    ``ping`` and ``log`` are added to ``checks``. ``shutting_down`` makes ``/readyz`` fail.
    ``version`` is what ``/version`` serves, all strings. ``paths()`` are listed at ``/`` beside our own.
    """

    def __init__(
        self,
        checks: Mapping[str, Check],
        *,
        version: Mapping[str, str] | None = None,
        paths: Callable[[], Iterable[str]] = tuple,
        shutting_down: Check = lambda: False,
    ) -> None:
        own: dict[str, Check] = {"ping": lambda: True, "log": lambda: True}
        every = {**own, **checks}
        self._endpoints: dict[str, Mapping[str, Check]] = {
            "healthz": every,
            "livez": {name: every[name] for name in LIVE_CHECKS},
            "readyz": {**every, "shutdown": lambda: not shutting_down()},
        }
        self._version = dict(version or {})
        self._paths = paths

    def routes(self) -> list[Route]:
        """Return the routes: each endpoint, each check of each endpoint, ``/version``, ``/`` and ``/index.html``."""
        # Some clients ask with the slash, and kube-apiserver answers both.
        routes = [Route(path, self._serve_version, methods=["GET"]) for path in ("/version", "/version/")]
        for endpoint, checks in self._endpoints.items():
            routes.append(Route(f"/{endpoint}", _all_checks(endpoint, checks), methods=["GET"]))
            routes += [Route(f"/{endpoint}/{name}", _one_check(name, check)) for name, check in checks.items()]
        routes += [Route(path, self._serve_index, methods=["GET"]) for path in ("/", "/index.html")]
        return routes

    async def _serve_version(self, _request: Request) -> Response:
        return _indented_json(self._version)

    async def _serve_index(self, _request: Request) -> Response:
        own = [f"/{endpoint}" for endpoint in self._endpoints] + ["/version"]
        own += [f"/{endpoint}/{name}" for endpoint, checks in self._endpoints.items() for name in checks]
        return _indented_json({"paths": sorted({*own, *self._paths()})})


def _indented_json(value: object) -> Response:
    body = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return Response(body, media_type="application/json")


def _one_check(name: str, check: Check) -> Callable[[Request], Awaitable[Response]]:
    async def serve(_request: Request) -> Response:
        if await _passes(check):
            return PlainTextResponse("ok", headers=NO_SNIFF)
        log.warning("health check failed", check=name)
        return PlainTextResponse(f"internal server error: check {name} failed", 500, headers=NO_SNIFF)

    return serve


def _all_checks(endpoint: str, checks: Mapping[str, Check]) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        excluded = request.query_params.getlist("exclude")
        included = [name for name in checks if name not in excluded]
        passed = await asyncio.gather(*(_passes(checks[name]) for name in included))
        failed = [name for name, fine in zip(included, passed, strict=True) if not fine]
        if failed:
            log.warning("health checks failed", endpoint=endpoint, checks=failed)
        if not failed and "verbose" not in request.query_params:
            return PlainTextResponse("ok", headers=NO_SNIFF)
        text = _report(endpoint, checks, failed, excluded)
        return PlainTextResponse(text, 500 if failed else 200, headers=NO_SNIFF)

    return serve


async def _passes(check: Check) -> bool:
    outcome = check()
    if not isawaitable(outcome):
        return outcome
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return await outcome
    except TimeoutError:
        return False


def _report(endpoint: str, checks: Iterable[str], failed: Sequence[str], excluded: Sequence[str]) -> str:
    known = set(checks)
    lines = []
    for name in checks:
        if name in excluded:
            lines.append(f"[+]{name} excluded: ok")
        else:
            lines.append(f"[-]{name} failed: reason withheld" if name in failed else f"[+]{name} ok")
    if stray := sorted({name for name in excluded if name not in known}):
        names = ", ".join(f'"{name}"' for name in stray)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
    lines.append(f"{endpoint} check {'failed' if failed else 'passed'}")
    return "\n".join(lines) + "\n"
