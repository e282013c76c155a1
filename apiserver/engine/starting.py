"""What a creating task gives."""

from dataclasses import dataclass

from krm.package.contents import File


@dataclass(frozen=True, slots=True)
class Start:
    """The contents a revision begins with, and what its author should know of how they came to be."""

    contents: dict[str, File]
    notes: tuple[str, ...] = ()
    """Sentences, such as a place that both sides of a merge had changed, and whose state was kept."""
