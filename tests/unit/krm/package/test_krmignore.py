import pytest
from cost import metered

from krm.package.krmignore import KrmIgnore


@pytest.mark.parametrize(
    ("rules", "path", "ignored"),
    [
        pytest.param("a.yaml", "a.yaml", True, id="name"),
        pytest.param("a.yaml", "x/y/a.yaml", True, id="name-at-any-depth"),
        pytest.param("a.yaml", "aXyaml", False, id="dot-is-a-dot"),
        pytest.param("a/b.yaml", "x/a/b.yaml", True, id="two-segments-at-any-depth"),
        pytest.param("a/b.yaml", "b.yaml", False, id="more-segments-than-the-path"),
        pytest.param("/a.yaml", "a.yaml", True, id="anchored"),
        pytest.param("/a.yaml", "x/a.yaml", False, id="anchored-elsewhere"),
        pytest.param("/x/a.yaml", "x/a.yaml", True, id="anchored-path"),
        pytest.param("x", "x/y/a.yaml", True, id="directory-by-its-name"),
        pytest.param("x/", "x/a.yaml", True, id="directory"),
        pytest.param("a.yaml/", "a.yaml", False, id="file-is-no-directory"),
        pytest.param("*.yaml", "x/a.yaml", True, id="star"),
        pytest.param("x/*.yaml", "x/y/a.yaml", False, id="star-stays-in-its-segment"),
        pytest.param("?.yaml", "ab.yaml", False, id="question-mark"),
        pytest.param("[a-c].yaml", "b.yaml", True, id="class"),
        pytest.param("[^a-c].yaml", "b.yaml", False, id="negated-class"),
        pytest.param("[!a-c].yaml", "d.yaml", True, id="class-negated-as-in-shells"),
        pytest.param(r"\*.yaml", "a.yaml", False, id="escaped-star"),
        pytest.param("[a.yaml", "[a.yaml", False, id="pattern-that-is-none"),
        pytest.param("*.yaml\n!a.yaml", "a.yaml", False, id="accepted"),
        pytest.param("!a.yaml\n*.yaml", "a.yaml", False, id="accepted-whatever-the-order"),
        pytest.param("!x\n*.yaml", "x/a.yaml", True, id="accepted-directory-does-not-accept-its-files"),
        pytest.param("x/\n!a.yaml", "x/a.yaml", True, id="nothing-is-looked-at-in-an-ignored-directory"),
        pytest.param("x/\n!x", "x/a.yaml", False, id="accepted-directory"),
        pytest.param("# a.yaml\n\n  \n", "a.yaml", False, id="comments-and-blank-lines"),
        pytest.param("a.yaml\r\nb.yaml\r\n", "b.yaml", True, id="carriage-returns"),
        pytest.param("", "a.yaml", False, id="nothing"),
    ],
)
def test_rules_say_what_is_ignored(rules: str, path: str, ignored: bool) -> None:
    assert KrmIgnore(rules).ignores(path) is ignored


def test_many_rules_and_paths_take_no_time_together() -> None:
    rules = KrmIgnore("\n".join("*a" * 30 + f"{n}.yaml" for n in range(1000)))
    with metered() as cost:
        assert not any(rules.ignores(f"{'a' * 60}/{n}.json") for n in range(2000))

    assert cost.seconds < 5
