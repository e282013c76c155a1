"""What the server itself tells: whether it answers and is ready, its certificate, its clock, its versions, what it has not pushed.

Source: ``kube-api.md`` 1.5, 4; ``users.md`` 2.2 (#4, #11).
"""

import asyncio
import datetime as dt
import json
import re
import shutil
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from typing import Final

from cryptography import x509

from krm.cli.doctor.finding import Finding, Severity, span
from krm.client.connection import Answer
from krm.version import porch_version

EXPIRES_SOON: Final = dt.timedelta(days=30)
"""A certificate has to be replaced before it ends, and people need time for it."""
LAST_PART: Final = 3
"""One that does not live long is replaced by a program, which does so when a third of its life is left."""
SKEW: Final = dt.timedelta(seconds=30)
"""Clocks that differ by more make ages, Leases and fresh certificates wrong."""
PUSHED_WITHIN: Final = 60.0
"""Seconds. A draft is pushed within one as long as its remote answers."""
KUBECTL_SECONDS: Final = 10.0
_MINOR: Final = re.compile(r"v1\.(\d+)\.")
_FIGURE: Final = re.compile(r"^(porch_outbox_\w+) ([0-9.e+]+)$", re.MULTILINE)
_BUILD: Final = re.compile(r'^porch_build_info\{version="([^"]{1,64})"\} ', re.MULTILINE)
_FAILED: Final = re.compile(r"^\[-\](\S+)", re.MULTILINE)


def of_readiness(address: str, answer: Answer) -> Iterator[Finding]:
    """Find which of its own checks the server does not pass."""
    if answer.code == HTTPStatus.OK:
        return
    failed = ", ".join(_FAILED.findall(answer.body.decode(errors="replace")))
    problem = f"not ready: checks that fail: {failed}" if failed else f"not ready: it answers {answer.code}"
    fix = "look at the server's log; porch doctor --data DIR on its host looks at its database and disk"
    yield Finding(Severity.ERROR, address, problem, fix)


def of_certificate(name: str, certificate: bytes, now: dt.datetime, fix: str) -> Iterator[Finding]:
    """Find that a certificate (DER or PEM) has ended or is about to."""
    try:
        found = (
            x509.load_pem_x509_certificate(certificate)
            if b"-----BEGIN" in certificate
            else x509.load_der_x509_certificate(certificate)
        )
    except ValueError as error:
        yield Finding(Severity.ERROR, name, f"cannot be read: {error}", fix)
        return
    left = found.not_valid_after_utc - now
    if left <= dt.timedelta():
        yield Finding(Severity.ERROR, name, f"expired {span(-left)} ago", fix, found.not_valid_after_utc.isoformat())
    elif left < min(EXPIRES_SOON, (found.not_valid_after_utc - found.not_valid_before_utc) / LAST_PART):
        yield Finding(Severity.WARNING, name, f"expires in {span(left)}", fix)
    if found.not_valid_before_utc > now:
        ahead = span(found.not_valid_before_utc - now)
        yield Finding(Severity.ERROR, name, f"is valid only in {ahead}", "set the clocks of both machines by NTP")


def time_of(answer: Answer) -> dt.datetime | None:
    """Return the server's clock as an answer tells it, to a second."""
    for name, value in answer.headers.items():
        if name.lower() == "date":
            try:
                found = parsedate_to_datetime(value)
            except ValueError:
                return None
            return found if found.tzinfo else None
    return None


def of_clock(address: str, theirs: dt.datetime | None, ours: dt.datetime) -> Iterator[Finding]:
    """Find that the clocks of the server and of this machine differ."""
    if theirs is None:
        return
    ahead = theirs - ours
    if abs(ahead) > SKEW:
        which = "ahead of" if ahead > dt.timedelta() else "behind"
        problem = f"its clock is {span(abs(ahead))} {which} this machine's"
        fix = "set the clocks of both machines by NTP: Leases, ages and fresh certificates depend on them"
        yield Finding(Severity.WARNING, address, problem, fix)


def of_versions(address: str, served: str, kubectl: str) -> Iterator[Finding]:
    """Find that kubectl is further from the server's Kubernetes version than Kubernetes supports: one minor version."""
    here, there = _MINOR.search(kubectl), _MINOR.search(served)
    if not here or not there or abs(int(here[1]) - int(there[1])) <= 1:
        return
    problem = f"serves the API of {served}, and kubectl is {kubectl}: more than one minor version apart"
    yield Finding(
        Severity.NOTE, address, problem, f"install a kubectl of 1.{there[1]} if one of its commands misbehaves"
    )


def of_figures(address: str, text: str) -> Iterator[Finding]:
    """Find in the server's metrics that drafts wait to be pushed for too long, and that it has another version than we have."""
    build, ours = _BUILD.search(text), porch_version()
    if build and build[1] != ours:
        problem = f"is Porch {build[1]}, and this command is of {ours}"
        yield Finding(Severity.NOTE, address, problem, "use the porch of the server's version where they disagree")
    figures = {name: float(value) for name, value in _FIGURE.findall(text)}
    oldest, drafts = figures.get("porch_outbox_oldest_seconds", 0.0), int(figures.get("porch_outbox_drafts", 0))
    if drafts and oldest > PUSHED_WITHIN:
        problem = f"{drafts} saved drafts are not in Git yet, the first for {span(dt.timedelta(seconds=oldest))}"
        fix = "see which Repositories are not Ready or take no pushes; until then the drafts are only in the database: back it up"
        yield Finding(Severity.WARNING, address, problem, fix)


async def kubectl_version() -> str:
    """Return the version of the kubectl on the path, empty where there is none that answers."""
    program = shutil.which("kubectl")
    if program is None:
        return ""
    started = await asyncio.create_subprocess_exec(
        program,
        "version",
        "--client",
        "--output=json",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(KUBECTL_SECONDS):
            printed, _ = await started.communicate()
        return str(json.loads(printed)["clientVersion"]["gitVersion"])
    except (TimeoutError, ValueError, KeyError, TypeError):
        return ""
    finally:
        if started.returncode is None:
            started.kill()
            await started.wait()


def certificate_file(path: str | None) -> bytes | None:
    """Return the client certificate that a kubeconfig names; None where it names none. Raises OSError."""
    return Path(path).read_bytes() if path else None
