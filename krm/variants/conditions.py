"""The words of conditions that variants and sets have alike. Source: ``variants.md`` 1.3, 1.6, 6.7."""

from typing import Final

STALLED: Final = "Stalled"
READY: Final = "Ready"
PAUSED: Final = "Paused"

VALID: Final = ("Valid", "all validation checks passed")
VALIDATION_ERROR: Final = "ValidationError"
MOST_CHARACTERS: Final = 4096
"""Of a condition's message."""


def paused_by_user(kind: str) -> tuple[str, str]:
    """Return reason and message of the condition Paused of an object, whose kind is named as in a sentence."""
    return "PausedByUser", f"nothing is written while the {kind} is paused"


def shortened(text: str, most: int = MOST_CHARACTERS) -> str:
    """Cut the middle out of a text that is longer than a status should carry."""
    if len(text) <= most:
        return text
    half = (most - 3) // 2
    return f"{text[:half]} … {text[-half:]}"
