"""Rules for names, label keys and values, annotation keys and finalizers.

Each ``*_problem`` function returns a sentence that says what is wrong, or "" when the text is fine. The sentences are those
of Kubernetes, which clients and their tests compare. Source: ``kube-api.md`` 2.2.
"""

import re

LABEL_LENGTH = 63
"""Characters in a DNS label, a label's name or its value."""
SUBDOMAIN_LENGTH = 253
"""Characters in a DNS subdomain."""

_LABEL_FORM = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_FORM = rf"{_LABEL_FORM}(\.{_LABEL_FORM})*"
_DNS_1035_FORM = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED_FORM = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_DNS_LABEL = re.compile(_LABEL_FORM)
_DNS_1035 = re.compile(_DNS_1035_FORM)
_SUBDOMAIN = re.compile(_SUBDOMAIN_FORM)
_QUALIFIED = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")


def _rule(sentence: str, form: str, *examples: str) -> str:
    shown = ",  or ".join(f"'{example}'" for example in examples)
    return f"{sentence} (e.g. {shown}, regex used for validation is '{form}')"


_LABEL_RULE = _rule(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric character",
    _LABEL_FORM,
    "my-name",
    "123-abc",
)
_DNS_1035_RULE = _rule(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end "
    "with an alphanumeric character",
    _DNS_1035_FORM,
    "my-name",
    "abc-123",
)
_SUBDOMAIN_RULE = _rule(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
    "with an alphanumeric character",
    _SUBDOMAIN_FORM,
    "example.com",
)
_VALUE_RULE = _rule(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character",
    f"({_QUALIFIED_FORM})?",
    "MyValue",
    "my_value",
    "12345",
)
_PART_RULE = _rule(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _QUALIFIED_FORM,
    "MyName",
    "my.name",
    "123-abc",
)
_EMPTY_NAME = "name part must be non-empty"


def dns_label_problem(text: str) -> str:
    """Check an RFC 1123 label: at most 63 of a-z, 0-9 and ``-``, alphanumeric at both ends."""
    if "." in text:
        return "must not contain dots"
    if len(text) > LABEL_LENGTH:
        return _too_long(LABEL_LENGTH)
    return "" if _DNS_LABEL.fullmatch(text) else _LABEL_RULE


def dns_1035_problem(text: str) -> str:
    """Check an RFC 1035 label: like an RFC 1123 label, but beginning with a letter."""
    if len(text) > LABEL_LENGTH:
        return _too_long(LABEL_LENGTH)
    return "" if _DNS_1035.fullmatch(text) else _DNS_1035_RULE


def subdomain_problem(text: str) -> str:
    """Check a lower case RFC 1123 subdomain: labels joined by dots, at most 253 characters."""
    if len(text) > SUBDOMAIN_LENGTH:
        return _too_long(SUBDOMAIN_LENGTH)
    return "" if _SUBDOMAIN.fullmatch(text) else _SUBDOMAIN_RULE


def path_segment_problem(text: str) -> str:
    """Check that a name can be one segment of a URL path."""
    if text in (".", ".."):
        return f"may not be '{text}'"
    for character in "/%":
        if character in text:
            return f"may not contain '{character}'"
    return ""


def qualified_name_problems(text: str) -> list[str]:
    """Check ``[prefix/]name`` and say everything that is wrong; Kubernetes says two things of a name that is empty."""
    problem = qualified_name_problem(text)
    return [problem, f"name part {_PART_RULE}"] if problem == _EMPTY_NAME else [problem] if problem else []


def qualified_name_problem(text: str) -> str:
    """Check ``[prefix/]name``: a label key, an annotation key or a finalizer."""
    prefix, slash, name = text.partition("/")
    if not slash:
        return _name_part_problem(prefix)
    if "/" in name:
        return (
            f"a qualified name {_PART_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )
    if not prefix:
        return "prefix part must be non-empty"
    if problem := subdomain_problem(prefix):
        return f"prefix part {problem}"
    return _name_part_problem(name)


def _name_part_problem(name: str) -> str:
    if not name:
        return _EMPTY_NAME
    if len(name) > LABEL_LENGTH:
        return f"name part {_too_long(LABEL_LENGTH)}"
    return "" if _QUALIFIED.fullmatch(name) else f"name part {_PART_RULE}"


def label_value_problem(text: str) -> str:
    """Check a label's value: empty, or at most 63 of letters, digits, ``-``, ``_``, ``.``, alphanumeric at both ends."""
    if len(text) > LABEL_LENGTH:
        return _too_long(LABEL_LENGTH)
    return "" if not text or _QUALIFIED.fullmatch(text) else _VALUE_RULE


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} characters"
