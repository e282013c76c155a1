"""Answers without what differs from run to run: uids, times, revisions, tokens, addresses.

A uid or an object's revision becomes its number in order of appearance within the case, so that "the same object"
and "nothing was written" still show.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import yaml
from conversation import Answer

EXACT_HEADERS = (
    "allow",
    "cache-control",
    "content-encoding",
    "content-type",
    "location",
    "retry-after",
    "vary",
    "warning",
    "www-authenticate",
    "x-content-type-options",
)
"""Headers whose value clients act on."""
PRESENT_HEADERS = ("audit-id", "etag", "expires", "last-modified")
"""Headers of which only the presence is compared."""

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_AGE = re.compile(r"^(\d+[smh])+$")
_GENERATED = re.compile(r"([Gg]en[-_])[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_REVISION_IN_TEXT = re.compile(r"(resource version|current|latest)(: |=)\d+(?: \(\d+\))?", re.IGNORECASE)
_RECORD_IN_TEXT = re.compile(r"\bin record \(\d+\)")
_OBJECT_IN_TEXT = re.compile(r'Invalid value: "\{.*?\}": ', re.DOTALL)
_CAUSES_IN_TEXT = re.compile(r" is invalid: \[.*\]$", re.DOTALL)
_CREDENTIAL = re.compile(r"X509SHA256=[0-9a-f]{64}")
_HASH = re.compile(r"\bhash=[0-9A-F]{128}")
_ADDRESS = re.compile(r"127\.0\.0\.1:\d+")
_HIDDEN = {"token": "<token>", "continue": "<continue>", "serverAddress": "<address>", "clientCIDR": "<cidr>"}
_UNORDERED = ("causes", "nonResourceRules", "resourceRules")
"""Lists that kube-apiserver answers in no fixed order, sometimes with the same item twice."""
_NAMED = "00000000-"
"""Uids that a case itself sends begin so, and stay."""


class _Numbers:
    """Numbers for values, in order of appearance."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._seen: dict[str, int] = {}

    def of(self, value: str) -> str:
        return f"<{self._kind} {self._seen.setdefault(value, len(self._seen) + 1)}>"


class Normaliser:
    """Normalises the answers of one case, which must be given in order."""

    def __init__(self) -> None:
        self._uids = _Numbers("uid")
        self._revisions = _Numbers("revision")

    def answer(self, answer: Answer, view: Callable[[Any], Any]) -> dict[str, Any]:
        """Return code, headers and body of an answer, ready for JSON; ``view`` picks a part of a JSON body."""
        headers: dict[str, Any] = {}
        for name in EXACT_HEADERS:
            if values := answer.header(name):
                headers[name] = [self._text(value) for value in values]
        headers |= {name: "<present>" for name in PRESENT_HEADERS if answer.header(name)}
        return {"code": answer.code, "headers": headers, "body": self._body(answer, view)}

    def see(self, answers: Sequence[Answer]) -> None:
        """Number what the answers to earlier steps carry."""
        for answer in answers:
            self._body(answer, lambda body: body)

    def _body(self, answer: Answer, view: Callable[[Any], Any]) -> Any:
        text = answer.body.decode(errors="backslashreplace")
        if answer.media_type == "application/yaml" or text.startswith(("{", "[")):
            try:
                return self._value(view(_decoded(answer.media_type, text)))
            except (ValueError, yaml.YAMLError):
                pass  # it only looked like it
        return self._value(view(text))

    def _value(self, value: Any, key: str = "", parent: Any = None) -> Any:
        if isinstance(value, dict):
            return {self._text(name): self._value(child, name, value) for name, child in value.items()}
        if isinstance(value, list) and key in _UNORDERED:
            told = {json.dumps(self._value(child), sort_keys=True) for child in value}
            return [json.loads(each) for each in sorted(told)]
        if isinstance(value, list):
            shown = [self._value(child, key, value) for child in value]
            return sorted(shown, key=_entry_order) if key == "managedFields" else shown
        if not isinstance(value, str):
            return value
        if key in _HIDDEN and value:
            return _HIDDEN[key]
        if key == "resourceVersion" and value.isdecimal():
            # Only an object's own revision is told exactly; that of a list is whatever was written last anywhere.
            return self._revisions.of(value) if "uid" in (parent or {}) else "<revision>"
        return self._text(value)

    def _text(self, text: str) -> str:
        text = _UID.sub(lambda uid: uid[0] if uid[0].startswith(_NAMED) else self._uids.of(uid[0]), text)
        text = _MICRO_TIME.sub("<microtime>", text)
        text = _TIME.sub("<time>", text)
        text = _GENERATED.sub(r"\1<random>", text)
        text = _REVISION_IN_TEXT.sub(r"\1\2<revision>", text)
        text = _RECORD_IN_TEXT.sub("in record (<revision>)", text)
        text = _OBJECT_IN_TEXT.sub('Invalid value: "<object>": ', text)
        # The causes say it too, and kube-apiserver puts them in no fixed order.
        text = _CAUSES_IN_TEXT.sub(" is invalid: [<causes>]", text)
        text = _CREDENTIAL.sub("X509SHA256=<digest>", text)
        text = _HASH.sub("hash=<hash>", text)
        text = _ADDRESS.sub("<address>", text)
        return "<age>" if _AGE.match(text) else text


def _entry_order(entry: Any) -> list[str]:
    """Order entries as they are, but for their times, which may be the same or not."""
    return [str(entry.get(key, "")) for key in ("operation", "manager", "apiVersion", "subresource")]


def _decoded(media_type: str, text: str) -> Any:
    if media_type == "application/yaml":
        return yaml.safe_load(text)
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith('{"type":'):
        return {"events": [json.loads(line) for line in lines]}
    decoded = json.loads(text)
    return {"events": [decoded]} if text.startswith('{"type":') else decoded


def differences(recorded: Any, found: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """Return (path, recorded, found) for each place where two normalised answers differ; ``...`` stands for absent."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        pairs = [(str(key), recorded.get(key, ...), found.get(key, ...)) for key in {**recorded, **found}]
    elif isinstance(recorded, list) and isinstance(found, list):
        longest = max(len(recorded), len(found))
        pairs = [(str(index), _at(recorded, index), _at(found, index)) for index in range(longest)]
    else:
        return [] if _same(recorded, found) else [(path, recorded, found)]
    return [each for key, one, other in pairs for each in differences(one, other, f"{path}.{key}" if path else key)]


def _same(recorded: Any, found: Any) -> bool:
    # True equals 1 for Python, not for a client.
    return type(recorded) is type(found) and bool(recorded == found)


def _at(values: list[Any], index: int) -> Any:
    return values[index] if index < len(values) else ...
