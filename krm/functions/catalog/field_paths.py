"""Field paths as results show them."""

from krm.package.comments import Path


def shown_path(path: Path) -> str:
    """Return a path in the notation of results: ``spec.containers[0].image``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")
