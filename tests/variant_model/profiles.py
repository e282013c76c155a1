"""How many examples a test is worth: few in CI, many in a search (``--hypothesis-profile=search``, ``make fuzz``)."""

from hypothesis import settings


def examples(*, ci: int, search: int) -> int:
    """Return the number for the profile that is loaded when test modules are imported."""
    return search if settings.get_current_profile_name() == "search" else ci
