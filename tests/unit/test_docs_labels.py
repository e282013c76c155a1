"""The reference of labels and annotations names every key that the server's code gives a meaning."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "labels-and-annotations.md"
KEY = re.compile(r"\"((?:[a-z]+\.)*(?:porch\.)?kpt\.dev/[a-zA-Z-]+)\"")
NOT_KEYS = {"kpt.dev/workload-identity-auth"}
"""Types of Secrets look the same."""


def test_every_key_in_the_code_stands_in_the_reference() -> None:
    sources = [path for folder in ("apiserver", "krm") for path in (ROOT / folder).rglob("*.py")]
    used = {key for path in sources for key in KEY.findall(path.read_text())}
    named = set(re.findall(r"`([a-z.]+/[a-z-]+)`", PAGE.read_text()))

    assert used - NOT_KEYS - named == set()
    assert {key for key in named if "kpt.dev" in key} - used == set()
