"""The version of Porch that runs."""

from importlib.metadata import PackageNotFoundError, version


def porch_version() -> str:
    """Return the installed version, "unknown" in a checkout that is not installed."""
    try:
        return version("pyporch")
    except PackageNotFoundError:
        return "unknown"
