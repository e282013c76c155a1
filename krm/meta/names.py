"""Rules for names, label keys and values, annotation keys and finalizers.

Each ``*_problem`` function returns a sentence that says what is wrong, or "" when the text is fine.
Source: ``kube-api.md`` 2.2.
"""

import re

LABEL_LENGTH = 63
"""Characters in a DNS label, a label's name or its value."""
SUBDOMAIN_LENGTH = 253
"""Characters in a DNS subdomain."""

_DNS_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_DNS_1035 = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
_QUALIFIED = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")


def dns_label_problem(text: str) -> str:
    """Check an RFC 1123 label: at most 63 of a-z, 0-9 and ``-``, alphanumeric at both ends."""
    if len(text) > LABEL_LENGTH:
        return f"must be no more than {LABEL_LENGTH} characters"
    if not _DNS_LABEL.fullmatch(text):
        return (
            "must be an RFC 1123 label: lower case letters, digits and '-', beginning and ending with a letter or digit"
        )
    return ""


def dns_1035_problem(text: str) -> str:
    """Check an RFC 1035 label: like an RFC 1123 label, but beginning with a letter."""
    if len(text) > LABEL_LENGTH:
        return f"must be no more than {LABEL_LENGTH} characters"
    if not _DNS_1035.fullmatch(text):
        return (
            "must be a DNS-1035 label: lower case letters, digits and '-', beginning with a letter and ending with "
            "a letter or digit"
        )
    return ""


def subdomain_problem(text: str) -> str:
    """Check a lower case RFC 1123 subdomain: labels joined by dots, at most 253 characters."""
    if len(text) > SUBDOMAIN_LENGTH:
        return f"must be no more than {SUBDOMAIN_LENGTH} characters"
    if not _SUBDOMAIN.fullmatch(text):
        return (
            "must be a lowercase RFC 1123 subdomain: lower case letters, digits, '-' and '.', "
            "beginning and ending with a letter or digit"
        )
    return ""


def path_segment_problem(text: str) -> str:
    """Check that a name can be one segment of a URL path."""
    if text in (".", ".."):
        return f'may not be "{text}"'
    for character in "/%":
        if character in text:
            return f'may not contain "{character}"'
    return ""


def qualified_name_problem(text: str) -> str:
    """Check ``[prefix/]name``: a label key, an annotation key or a finalizer."""
    prefix, slash, name = text.rpartition("/")
    if slash and (not prefix or subdomain_problem(prefix)):
        return "its prefix must be a lowercase RFC 1123 subdomain of at most 253 characters"
    if not name:
        return "its name part must not be empty"
    if len(name) > LABEL_LENGTH:
        return f"its name part must be no more than {LABEL_LENGTH} characters"
    if not _QUALIFIED.fullmatch(name):
        return "its name part takes letters, digits, '-', '_' and '.', and begins and ends with a letter or digit"
    return ""


def label_value_problem(text: str) -> str:
    """Check a label's value: empty, or at most 63 of letters, digits, ``-``, ``_``, ``.``, alphanumeric at both ends."""
    if len(text) > LABEL_LENGTH:
        return f"must be no more than {LABEL_LENGTH} characters"
    if text and not _QUALIFIED.fullmatch(text):
        return "takes letters, digits, '-', '_' and '.', and begins and ends with a letter or digit, or is empty"
    return ""
