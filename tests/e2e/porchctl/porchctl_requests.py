"""What all commands of the stand-in for porchctl share: a command line taken apart, and requests that may be refused."""

from dataclasses import dataclass, field
from typing import Any

from porch_client import PORCH, Answer, Object, PorchClient

ANY = "application/json, */*"
JSON = "application/json"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1,application/json"
SWITCHES = {"--no-headers", "--show-kptfile", "--all-namespaces", "--create-branch"}
SHORT = {"-n": "--namespace", "-o": "--output", "-A": "--all-namespaces"}


class Failed(Exception):
    """A command failed; the text is what it prints behind ``Error:``."""


@dataclass
class Command:
    """One command line, taken apart."""

    names: list[str]
    flags: dict[str, str]
    stdin: str = ""
    stdout: list[str] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)

    def flag(self, name: str, default: str = "") -> str:
        """Return the value of a flag."""
        return self.flags.get(name, default)


def parsed(arguments: list[str], stdin: str) -> Command:
    """Take a command line apart: names, and flags with their values behind ``=`` or in the next word."""
    names: list[str] = []
    flags: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "-" or not word.startswith("-"):
            names.append(word)
            continue
        name, equals, value = word.partition("=")
        name = SHORT.get(name, name)
        flags[name.lstrip("-")] = value if equals else "true" if name in SWITCHES else rest.pop(0)
    return Command(names, flags, stdin)


class Requests:
    """Sends a command's requests to one server."""

    def __init__(self, client: PorchClient) -> None:
        self._client = client

    def answer(self, method: str, path: str, body: Object | None = None, accept: str = ANY) -> Answer:
        """Send a request; return the answer whatever it is."""
        return self._client.request(method, path, body, accept=accept)

    def send(self, method: str, path: str, body: Object | None = None, accept: str = ANY) -> Any:
        """Send a request and return the object of the answer; a refusal fails the command with its message."""
        answer = self.answer(method, path, body, accept)
        if answer.code >= 400:
            raise Failed(answer.message)
        return answer.object

    def path(self, command: Command, resource: str, *rest: str, group: str = PORCH) -> str:
        """Return the path of a resource in the command's namespace."""
        return "/".join([group, "namespaces", command.flag("namespace", self._client.namespace), resource, *rest])
