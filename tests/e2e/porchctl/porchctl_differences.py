"""Where our answers to porchctl's requests differ from upstream's, and why.

What the README of the recordings allows in general is not listed: 409 and 422 for 500 with the same message, and our
default gate. Each row names a case by a pattern of the shell, requests and places in the answer by regular expressions,
and the reason; ``test_porchctl_transcripts.py`` fails when a row is no longer needed.
"""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Allowed:
    """Places where the answers to some requests may differ."""

    case: str
    request: str
    place: str
    reason: str

    def is_about(self, case: str) -> bool:
        """Tell whether a case has this difference."""
        return fnmatchcase(case, self.case)

    def covers(self, request: str, place: str) -> bool:
        """Tell whether a difference at ``place`` of the answer to ``request`` is this one."""
        return bool(re.search(self.request, request) and re.fullmatch(self.place, place))


_ITEM = r"(items\[\d+\]\.)?"

ALLOWED = [
    Allowed(
        "*",
        r"^POST .*/repositories$",
        r"metadata\.finalizers",
        "The finalizer is there from the first moment, so that no deletion can overtake it; upstream's controller adds "
        "it later.",
    ),
    *(
        Allowed(
            case,
            r"/repositories",
            _ITEM + r"status\.packageCount",
            "A repository without packages says 0; upstream leaves a zero out.",
        )
        for case in ("rpkg-init", "rpkg-upgrade")
    ),
    *(
        Allowed(
            case,
            r"^GET ",
            r"columnDefinitions\[\d+\]\.description",
            "What a column means is said in words of ours; nobody prints them.",
        )
        for case in ("repo-register", "rpkg-lifecycle", "rpkg-upgrade")
    ),
    *(
        Allowed(
            case,
            r"/packagerevisions",
            r"columnDefinitions\[0\]\.format",
            "The first column says that it is the name, as those of Kubernetes do.",
        )
        for case in ("rpkg-lifecycle", "rpkg-upgrade")
    ),
    Allowed("rpkg-lifecycle", r"^GET /api/v1/namespaces/", r"rows\[0\]\.cells\[2\]", "An age."),
    *(
        Allowed(case, r"^GET ", r"spec\.resources\.README\.md", "The README of a new package is in words of ours.")
        for case in ("rpkg-init", "rpkg-push")
    ),
    Allowed(
        "rpkg-clone",
        r"fieldSelector=spec.packageName%3Dempty$",
        r"items\[0\]\.status\.selfLock\.git\.commit",
        "What is on a branch names the newest commit that touched it; upstream names the head of the branch where none of "
        "its own commits did.",
    ),
    Allowed(
        "rpkg-upgrade",
        r"/packagerevisions",
        _ITEM + r"status\.(selfLock|upstreamLock)\.git\.directory",
        "The place in the repository, by which kpt finds the package again; upstream forgets the directory of the "
        "Repository (porch-api.md 6.7 and 13).",
    ),
    Allowed(
        "rpkg-upgrade",
        r"/packagerevisionresources/",
        r"spec\.resources\.Kptfile\..*\.(upstream|upstreamLock)\.git\.directory",
        "The same in the Kptfile.",
    ),
    Allowed(
        "rpkg-upgrade",
        r"^PUT .*/packagerevisionresources/",
        r"spec\.resources\.Kptfile\.documents\[0\]\.order\[\d+\]",
        "A section that the client appended stays where it is: we write the smallest difference (decisions.md 11).",
    ),
]
