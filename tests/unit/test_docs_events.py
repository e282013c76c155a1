"""The reference of Events names every reason that the engine reports, and no other."""

import re
from pathlib import Path

from apiserver.engine import revision_events
from controllers.packagevariant.failures import Reason

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "events.md"


def test_every_reason_stands_in_the_reference_and_no_other() -> None:
    reasons = {value for name, value in vars(revision_events).items() if name.isupper() and isinstance(value, str)}

    listed = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)

    assert sorted(listed) == sorted(reasons)


def test_every_event_of_a_variant_is_named() -> None:
    sources = [path.read_text() for path in (ROOT / "controllers" / "packagevariant").glob("*.py")]
    sources.append((ROOT / "krm" / "variants" / "upstream.py").read_text())
    told = {reason for text in sources for reason in re.findall(r'[.]tell\(\s*"([A-Z]\w+)"', text)}
    warned = set(re.findall(r'"(Upstream[A-Z]\w+)"', sources[-1]))

    assert len(told) >= 7
    assert len(warned) >= 3
    assert sorted(name for name in told | warned | set(Reason) if f"`{name}`" not in PAGE.read_text()) == []
