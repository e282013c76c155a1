"""What is found of refs that moved, put together with what was found before, is what a discovery of everything finds."""

import random
from collections.abc import Callable

import pytest
from test_git_discovery import MAIN, History

from storage.git.discovery import FoundRevision
from storage.git.rediscovery import moved_refs, renewed
from storage.git.refs import TAGS

PACKAGES = ("a", "b/inner", "c")


class Life:
    """Moves refs of a repository as users and strangers do."""

    def __init__(self, seed: int) -> None:
        self.history = History()
        self._chance = random.Random(seed)  # noqa: S311 # repeatable, not secret
        self._count = 0

    def step(self) -> None:
        """Do one thing."""
        steps: list[Callable[[str], None]] = [
            self._publish,
            self._draft,
            self._propose_deletion,
            self._drop,
            self._edit,
            self._remove,
        ]
        self._count += 1
        self._chance.choice(steps)(self._chance.choice(PACKAGES))

    def _publish(self, package: str) -> None:
        number = 1 + sum(ref.startswith(f"{TAGS}{package}/v") for ref in self.history.refs)
        self.history.publish(package, f"w{self._count}", number, f"text {self._count}")

    def _draft(self, package: str) -> None:
        self.history.draft(package, f"w{self._count}", f"text {self._count}")

    def _propose_deletion(self, package: str) -> None:
        tags = sorted(ref for ref in self.history.refs if ref.startswith(f"{TAGS}{package}/"))
        for tag in tags[-1:]:
            self.history.refs[tag.replace(TAGS, "refs/heads/deletionProposed/")] = self.history.refs[tag]

    def _drop(self, package: str) -> None:
        others = sorted(ref for ref in self.history.refs if f"/{package}/" in ref)
        if others:
            del self.history.refs[self._chance.choice(others)]

    def _edit(self, package: str) -> None:
        head = self.history.refs[MAIN]
        self.history.refs[MAIN] = self.history.change(head, package, f"edited {self._count}", "by hand")

    def _remove(self, package: str) -> None:
        head = self.history.refs[MAIN]
        self.history.refs[MAIN] = self.history.change(head, package, None, "removed by hand")


def by_place(revisions: list[FoundRevision]) -> dict[tuple[str, str], FoundRevision]:
    found = {(one.ref, one.package): one for one in revisions}
    assert len(found) == len(revisions), "something was found twice"
    return found


@pytest.mark.parametrize("seed", range(40))
def test_what_moved_put_to_what_was_there_is_everything(seed: int) -> None:
    life = Life(seed)
    for _ in range(8):
        life.step()
    before, all_before = dict(life.history.refs), life.history.found()
    for _ in range(5):
        life.step()
    after = life.history.refs
    moved = moved_refs(before, after)
    proposed = {ref.replace("refs/heads/deletionProposed/", TAGS) for ref in moved}

    found = life.history.found(only=moved | proposed, was=before[MAIN])
    together, everything = renewed(all_before, found, before, after, MAIN), life.history.found()

    told, expected = by_place(together.revisions), by_place(everything.revisions)
    assert told.keys() == expected.keys()
    for place, one in expected.items():
        if place[0] != MAIN:
            assert told[place] == one
        assert (told[place].tree, told[place].kptfile) == (one.tree, one.kptfile)
    assert not together.incomplete


def test_without_its_branch_a_repository_has_no_packages_at_it() -> None:
    history = History()
    history.publish("a", "w1", 1, "one")
    before, all_before = dict(history.refs), history.found()
    del history.refs[MAIN]

    found = history.found(only={MAIN}, was=before[MAIN])
    together = renewed(all_before, found, before, history.refs, MAIN)

    assert [one.ref for one in together.revisions] == ["refs/tags/a/v1"]
