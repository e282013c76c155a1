"""Comments that a client lost; porch-api.md 5.2."""

import pytest
from cost import metered

from krm.package.comment_healing import FEW_BYTES, MOST_BYTES, heal_comments, is_quick, may_have_lost_comments
from krm.package.contents import EXECUTABLE, Contents, File

COMMENTED = """\
# about all of it

apiVersion: v1
kind: ConfigMap # kind
metadata: # kpt-merge: ns/x
  name: x
  namespace: ns
data:
  # above
  key: value # kpt-set: ${key}
  list: |
    # text
"""
BARE = """\
kind: ConfigMap
apiVersion: v1
metadata:
  namespace: ns
  name: x
data:
  list: |
    # text
  key: other
"""
HEALED = """\
# about all of it

kind: ConfigMap # kind
apiVersion: v1
metadata: # kpt-merge: ns/x
  namespace: ns
  name: x
data:
  list: |
    # text
  # above
  key: other # kpt-set: ${key}
"""


def package(**files: str) -> Contents:
    return {path.replace("_", "."): File(text.encode()) for path, text in files.items()}


def healed(before: Contents, after: Contents) -> dict[str, str]:
    return {path: file.data.decode() for path, file in heal_comments(before, after).items()}


def one(before: str, after: str) -> str:
    return healed(package(a_yaml=before), package(a_yaml=after))["a.yaml"]


def test_every_lost_comment_goes_back_to_its_field() -> None:
    assert one(COMMENTED, BARE) == HEALED


def test_a_resource_is_found_in_another_file_and_among_others() -> None:
    after = package(b_yaml=f"a: 1\n---\n{BARE}", Kptfile="kind: Kptfile\n")

    assert healed(package(a_yaml=COMMENTED), after) == {"b.yaml": f"a: 1\n---\n{HEALED}", "Kptfile": "kind: Kptfile\n"}


@pytest.mark.parametrize("changed", [("name: x", "name: y"), ("v1", "v2"), ("ConfigMap", "Secret"), ("ns", "other")])
def test_another_resource_gets_none(changed: tuple[str, str]) -> None:
    other = BARE.replace(*changed)

    assert one(COMMENTED, other) == other


def test_comments_that_are_new_or_were_moved_stay_as_they_are() -> None:
    before = "kind: A\nx: 1 # old\ny: 2 # moved\nz: 3\n"

    assert one(before, "kind: A\nx: 1 # new\ny: 2\nz: 3 # moved\n") == "kind: A\nx: 1 # new\ny: 2\nz: 3 # moved\n"


def test_comments_follow_named_and_equal_list_elements() -> None:
    before = "kind: A\nl:\n- name: one # 1\n- name: two # 2\ns:\n- a # a\n- b # b\n"

    assert one(before, "kind: A\nl:\n- name: two\n- name: three\ns:\n- c\n- b\n") == (
        "kind: A\nl:\n- name: two # 2\n- name: three\ns:\n- c\n- b # b\n"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (COMMENTED.replace("# kind", "#@ code"), BARE),
        (COMMENTED, BARE.replace("kind: ConfigMap", "kind: ConfigMap #! ytt")),
        (COMMENTED, "kind: [\n"),
        ("a: [ # b\n", BARE),
        (COMMENTED, "- 1\n"),
        (COMMENTED, ""),
    ],
)
def test_what_is_ytts_or_no_resource_stays_as_it_came(before: str, after: str) -> None:
    assert one(before, after) == after


def test_files_that_did_not_change_and_modes_stay() -> None:
    before = {"a.yaml": File(COMMENTED.encode(), EXECUTABLE), "b.yaml": File(b"# b\n")}
    after = {"a.yaml": File(BARE.encode(), EXECUTABLE), "b.yaml": File(b"# b\n")}

    assert heal_comments(before, after) == {"a.yaml": File(HEALED.encode(), EXECUTABLE), "b.yaml": File(b"# b\n")}
    assert heal_comments(before, before) == before


def test_whether_there_is_anything_to_do_is_known_without_reading() -> None:
    assert may_have_lost_comments(package(a_yaml=COMMENTED), package(a_yaml=BARE))
    assert may_have_lost_comments(package(a_yaml=COMMENTED), package(b_yaml=BARE))
    assert not may_have_lost_comments(package(a_yaml=COMMENTED), package(a_yaml=COMMENTED))
    assert not may_have_lost_comments(package(a_yaml=COMMENTED), package(a_yaml=COMMENTED.replace("value", "other")))
    assert may_have_lost_comments(package(a_yaml="a: 1 # x\nb: 1 # x\n"), package(a_yaml="a: 1 # x\nb: 2\n"))
    assert not may_have_lost_comments(package(a_yaml=BARE.replace("#", "")), package(a_yaml=COMMENTED))
    assert not may_have_lost_comments(package(a_md=COMMENTED), package(a_md=BARE))
    assert not may_have_lost_comments(package(a_yaml=COMMENTED), package(a_yaml=BARE, b_yaml="x" * MOST_BYTES))


def test_what_changed_much_is_not_compared_in_passing() -> None:
    large = "".join(f"key{number}: value # {number}\n" for number in range(FEW_BYTES // 16))

    assert is_quick(package(a_yaml=COMMENTED, b_yaml=large), package(a_yaml=BARE, b_yaml=large))
    assert not is_quick(package(a_yaml=COMMENTED), package(a_yaml=BARE, b_yaml=large))
    assert not is_quick(package(a_yaml=large), package(a_yaml=BARE))


def test_what_changed_too_much_to_be_looked_through_costs_nothing() -> None:
    """Comparing the comments of 4 MB took more than a second, only to find out that they are too many."""
    large = "".join(f"key{number}: value # {number}\n" for number in range(150_000))
    before, after = package(a_yaml=large), package(a_yaml=f"{large}more: x\n")
    with metered() as cost:
        assert not may_have_lost_comments(before, after)

    assert cost.seconds < 0.1
