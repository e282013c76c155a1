"""Where Porch answers otherwise than a kube-apiserver, and why.

A difference that a client could stumble over is not listed here but repaired. Each row names cases by a pattern, a
place in the answer by a pattern, and the reason; ``test_differential.py`` fails when a row is no longer needed.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Difference:
    """A place where the answers to some cases may differ: patterns of the shell for both."""

    case: str
    path: str
    reason: str

    def covers(self, case: str, path: str) -> bool:
        """Tell whether a difference at ``path`` of the answer to ``case`` is this one."""
        return fnmatchcase(case, self.case) and fnmatchcase(path, self.path)


DIFFERENCES: list[Difference] = []
