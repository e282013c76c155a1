"""Where Porch answers otherwise than a kube-apiserver, and why.

A difference that a client could stumble over is not listed here but repaired. Each row names cases by a pattern of
the shell, places in the answer by a regular expression, and the reason; ``test_differential.py`` fails when a row is
no longer needed. Decisions of the specification are quoted by their section of ``kube-api.md``.
"""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Difference:
    """Places where the answers to some cases may differ."""

    case: str
    path: str
    reason: str

    def is_about(self, case: str) -> bool:
        """Tell whether the answer to ``case`` may differ."""
        return fnmatchcase(case, self.case)

    def covers(self, case: str, path: str) -> bool:
        """Tell whether a difference at ``path`` of the answer to ``case`` is this one."""
        return self.is_about(case) and re.fullmatch(self.path, path) is not None


def _rows(reason: str, path: str, *cases: str) -> list[Difference]:
    return [Difference(case, path, reason) for case in cases]


_STATUS = r"code|body\.(code|reason|message|details.*)"
_ANY = r"(code|body|headers).*"
_MESSAGE = r"body\.message"

WORDS = _rows(
    "The text is that of a Go library, or names Go types and source files; Porch says the same in words of its own.",
    _MESSAGE,
    "apply a list",
    "apply a word",
    "apply bad YAML",
    "apply a duplicate key strictly",
    "body as YAML with a number",
    "body as bad YAML",
    "body as protobuf of another kind",
    "body as protobuf of an unknown kind",
    "body cut short",
    "body followed by more",
    "body nested deeply",
    "body of a list",
    "body of a word",
    "body of nothing",
    "body of spaces",
    "body that is not JSON",
    "body update not JSON",
    "body with * of a wrong form",
    "body with * of a wrong type",
    "body with a byte order mark",
    "create a list",
    "create another *",
    "create an unknown kind",
    "create with a label that is a number",
    "create with a bad timeout",
    "create without a body",
    "custom with labels of a wrong type",
    "custom with metadata of a wrong type",
    "data that is a number",
    "data that is a list",
    "binary data that is not base64",
    "immutable that is a string",
    "lease with a bad time",
    "list a bad revision",
    "list a negative revision",
    "list with a bad token",
    "list with a token of the wrong form",
    "merge a list",
    "merge a word",
    "merge an empty body",
    "merge by YAML",
    "merge what is not JSON",
    "json patch that is *",
    "partial list of one",
    "partial object of a list",
    "secret with data that is not base64",
    "strategic list",
    "strategic not JSON",
    "update another kind",
    "update another uid",
)
WORDS += _rows(
    "Only the message of the JSON parser differs.",
    r"body\.(message|details\.causes\.0\.message)",
    "secret docker config that is not JSON",
    "definition with a bad rule",
)
WORDS += _rows(
    "Only the path of the duplicate key is named, not its line: JSON and YAML are told of alike.",
    r"headers\.warning\.0",
    "apply a duplicate key",
    "body as YAML with a duplicate key",
)

BLAME = _rows(
    "A mistake of the client's is answered with 400; kube-apiserver calls it its own (500). 2.3 and 2.10.",
    _STATUS,
    "apply an unknown field",
    "apply a wrong type",
    "apply a duplicate in a set",
    "apply a duplicate key in a list",
    "apply an item without its key",
    "apply unknown to a custom resource",
    "create with a resource version",
    "delete with options of another kind",
    "delete with options that are not JSON",
    "delete with options of a wrong type",
    "get a bad revision",
    "strategic unknown directive",
    "strategic owner without a key",
    "update with a bad revision",
    "watch from a bad revision",
)
BLAME += _rows(
    "Impersonation without a user is a mistake of the client's: 400 and a Status, not 500 and a text. 3.5.",
    _ANY,
    "group without a user",
    "extra without a user",
)
BLAME += _rows(
    "kube-apiserver breaks the connection off (a panic); Porch says that the kind takes no protobuf.",
    _ANY,
    "body custom resource as protobuf",
)

STRICTER = _rows(
    "Bytes that are no text would be stored as others than were sent; Porch refuses them (decision 10).",
    _ANY,
    "body that is not UTF-8",
    "body with a lone surrogate",
)
STRICTER += _rows(
    "All documents but the first would be dropped without a word.",
    _ANY,
    "body as YAML of two documents",
)
STRICTER += _rows(
    "RFC 6902 requires a value; kube-apiserver takes its absence for an empty one.",
    _ANY,
    "json patch without a value",
)
STRICTER += _rows(
    "httptools, which reads HTTP, refuses methods that do not exist before Porch sees the request.",
    _ANY,
    "method unknown",
)
STRICTER += _rows(
    "What is read-only is served for GET and HEAD alone; kube-apiserver takes any method here.",
    _ANY,
    "method POST to discovery",
    "method POST to health",
)
STRICTER += _rows(
    "The document is JSON whatever is asked for, so who takes no JSON is told so.",
    _ANY,
    "openapi as text",
)
STRICTER += _rows(
    "A version that objects are stored in is one of the definition's, whichever door the status comes by.",
    _ANY,
    "definition status patched",
)
STRICTER += _rows(
    "Conversion by webhook is not served. 2.15.",
    r"body\.(message|details\.causes.*)",
    "definition with a webhook",
)

LOOSER = _rows(
    "HEAD is answered as GET without a body. 1.3.", "code", "method HEAD", "method HEAD for what is not there"
)
LOOSER += _rows("A range like application/* is matched. 1.8.", _ANY, "accept any application")
LOOSER += _rows(
    "A % that escapes nothing stands for itself; no object has such a name.", _ANY, "path with a percent sign alone"
)
LOOSER += _rows(
    "A kind and a version that are left out are those of the URL, for custom resources as for all others. 1.9.",
    _ANY,
    "custom without a kind",
    "custom without a version",
)
LOOSER += _rows(
    "The limit counts although any revision will do; kube-apiserver may pass over it. 2.5.",
    r"body\.(items\.2|metadata\.(continue|remainingItemCount))",
    "list any revision by pages",
)

PROTOBUF = _rows(
    "Protobuf is read but never written, so it is not offered. 1.8.",
    r"body\.(message|details)",
    "accept *",
    "aggregated old",
    "aggregated of an unknown version",
    "api resources as text",
    "table of an unknown version",
    "watch as YAML",
)

TOLD = _rows(
    "The error names the object and the formats that it takes; kube-apiserver's names neither.",
    r"body\.(message|details)",
    "patch as *",
    "patch of an unknown kind",
)
TOLD += _rows(
    "The error names the object and not its contents, which its author may not be allowed to read.",
    r"body\.(message|details\.(name|group|kind|causes\.0\.message))",
    "merge a wrong type",
    "merge an unknown field strictly",
    "merge a duplicate key strictly",
    "merge unknown into a custom resource",
    "json patch to a wrong type",
    "strategic wrong type",
)
TOLD += _rows(
    "A patch to another kind is refused for that, not for the values that do not fit it.", _STATUS, "merge another kind"
)
TOLD += _rows("Another uid in a patch is a conflict. 2.9.", _STATUS, "merge another uid")

LISTS = _rows(
    "Items of a list say what they are: stored bytes are served as they are. 1.8.",
    r"body\.items\.\d+\.(kind|apiVersion)",
    "*",
)
TABLES = _rows(
    "Descriptions are our own words; Kubernetes' are its documentation.",
    r"body(\.events\.\d+\.object)?\.columnDefinitions\.\d+\.description",
    "*",
)
TABLES += _rows(
    "The objects in rows of an old Table are of the version that is current; nobody asks for old Tables alone.",
    r"body\.rows\.\d+\.object\.apiVersion",
    "table only, old",
)

DISCOVERY = _rows(
    "Group and version of a kind are always told; kube-apiserver leaves out those of the parent. 1.6.",
    r"body\.items\.\d+\.(metadata\.name|versions\.\d+\.resources\.\d+(\.subresources\.\d+)?\.responseKind\.(group|version))",
    "aggregated *",
)
DISCOVERY += _rows(
    "The answer depends on Accept or Accept-Encoding, and caches are told so.",
    r"headers\.vary.*",
    "accept no gzip for a large answer",
    "api versions",
    "api groups*",
    "openapi root",
    "openapi v2*",
)
DISCOVERY += _rows(
    "JSON is called JSON, has an entity tag, and a redirect has no content type.",
    r"headers\.(content-type.*|etag|last-modified)",
    "openapi root",
    "openapi with a stale hash",
    "openapi v2 as protobuf only",
)
DISCOVERY += _rows(
    "What is required is checked by the kind's own rules, which say it in Kubernetes' words; the schema only names types.",
    r"body\..*\.(required.*|enum)",
    "openapi core schemas",
    "openapi role schemas",
)
DISCOVERY += _rows(
    "Health answers are alike, whichever check is asked for.", r"headers\.x-content-type-options", "health of a check"
)
DISCOVERY += _rows("The content type is the Python metrics library's.", r"headers\.content-type\.0", "metrics")

QUIRKS = _rows(
    "kube-apiserver records managers of objects that are never stored, and of fields that it drops.",
    r"body\.metadata\.(managedFields.*|uid)",
    "lease with a strategy and no holder",
    "namespace finalizers changed by update",
    "status updated",
)
QUIRKS += _rows(
    "The scale's path is read after the schema has judged the object, so a wrong type is told once.",
    r"body\.details\.causes.*",
    "custom with a spec that is a list",
    "status of a wrong type",
)
QUIRKS += _rows(
    "The generation is the server's alone. 2.1.", r"body\.metadata\.generation", "create with system fields"
)
QUIRKS += _rows("Bodies may have 6 MiB, as upstream's server allows. 1.2.", _STATUS, "body too large")
QUIRKS += _rows(
    "A missing name is told first; then what else is missing.",
    r"body\.(message|details\.causes.*)",
    "definition as an empty object",
)
QUIRKS += _rows(
    "Every refusal of access is marked so, this one, too.",
    r"headers\.x-content-type-options",
    "bob applies with patch alone",
)

WATCHES = _rows(
    "A bookmark carries a revision and its mark alone. 2.7.",
    r"body\.events\.1\.object\.(spec|columnDefinitions|rows\.0\..*)",
    "watch as a stream",
    "watch as a stream from any revision",
    "watch as a table stream",
)
WATCHES += _rows(
    "A bookmark is sent two seconds before the end of any watch that wants them, by kube-apiserver now and then. 2.7.",
    r"body(\.events\.0\.object\.spec)?",
    "watch with bookmarks",
)

DIFFERENCES: list[Difference] = [
    *WORDS,
    *BLAME,
    *STRICTER,
    *LOOSER,
    *PROTOBUF,
    *TOLD,
    *LISTS,
    *TABLES,
    *DISCOVERY,
    *QUIRKS,
    *WATCHES,
]
