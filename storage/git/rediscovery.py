"""What a repository holds after some of its refs moved: what all refs held before, and what the moved ones hold now."""

from collections.abc import Mapping

from storage.git.discovery import Discovery


def moved_refs(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    """Return the refs that came, went or point to something else."""
    return {ref for ref in before.keys() | after.keys() if before.get(ref) != after.get(ref)}


def renewed(
    all_before: Discovery, found: Discovery, before: Mapping[str, str], after: Mapping[str, str], head: str
) -> Discovery:
    """Return what ``after`` holds, of everything that ``before`` held and what was ``found`` where refs moved since.

    ``head`` is the ref of the registered branch. The packages at it are as new as an incremental discovery leaves them: those that
    the branch did not change are as they were.
    """
    moved = moved_refs(before, after)
    outdated = moved | {one.ref for one in found.revisions if one.ref != head}
    at_head = {one.package for one in found.revisions if one.ref == head} | set(found.removed)
    kept = [
        one
        for one in all_before.revisions
        if (one.package not in at_head and head in after if one.ref == head else one.ref not in outdated)
    ]
    problems = [problem for problem in all_before.problems if problem.partition(": ")[0] not in moved]
    incomplete = all_before.incomplete or found.incomplete
    return Discovery([*kept, *found.revisions], problems + found.problems, incomplete=incomplete)
