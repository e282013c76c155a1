import pytest
from cost import processor_seconds

from krm.package.comments import Comment, read_comments, write_comments
from krm.package.yaml_reader import YamlError, read_document

TEXT = """\
# licence

# the version
apiVersion: v1 # v
metadata: # kpt-merge: ns/n
  name: x
  # name: y

# what it does
spec:
  # all of them
  list: # kpt-set: ${list}
  - a # first
  # above b
  - b
  - # behind the dash
    c: 1
    # about d
    d: "# no" # yes
  flow: [a, b] # flow
  text: | # block
    # part of the text

    more
  # above fold
  fold: >-
    a
# tail

# the end
"""

COMMENTS = {
    (): Comment(head="# licence", foot="# the end"),
    ("apiVersion",): Comment(head="# the version", line="# v"),
    ("metadata",): Comment(line="# kpt-merge: ns/n"),
    ("metadata", "name"): Comment(foot="# name: y"),
    ("spec",): Comment(head="# what it does", foot="# tail"),
    ("spec", "list"): Comment(head="# all of them", line="# kpt-set: ${list}"),
    ("spec", "list", 0): Comment(line="# first"),
    ("spec", "list", 1): Comment(head="# above b"),
    ("spec", "list", 2): Comment(line="# behind the dash"),
    ("spec", "list", 2, "d"): Comment(head="# about d", line="# yes"),
    ("spec", "flow"): Comment(line="# flow"),
    ("spec", "text"): Comment(line="# block"),
    ("spec", "fold"): Comment(head="# above fold"),
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_comments_belong_to_what_they_stand_at(newline: str, mark: str) -> None:
    assert read_comments(mark + TEXT.replace("\n", newline)) == COMMENTS


def test_writing_what_is_there_changes_nothing() -> None:
    assert write_comments(TEXT, COMMENTS) == TEXT


def test_comments_can_all_be_dropped() -> None:
    bare = write_comments(TEXT, dict.fromkeys(COMMENTS, Comment()))

    assert read_comments(bare) == {}
    assert [line for line in bare.splitlines() if "#" in line] == ['    d: "# no"', "    # part of the text"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("# c\na: 1\n", {("a",): Comment(head="# c")}, id="above-the-first-key"),
        pytest.param("# c\n\na: 1\n", {(): Comment(head="# c")}, id="above-the-document"),
        pytest.param("# c\n\n# d\n\na: 1\n", {(): Comment(head="# c\n\n# d")}, id="two-paragraphs"),
        pytest.param("a: 1\n# c\n\nb: 2\n", {("a",): Comment(foot="# c")}, id="foot-at-once"),
        pytest.param("a: 1\n\n# c\n\nb: 2\n", {("a",): Comment(foot="# c")}, id="foot-between-blank-lines"),
        pytest.param("a: 1\n\n# c\nb: 2\n", {("b",): Comment(head="# c")}, id="head-below-a-blank-line"),
        pytest.param("a:\n  b: 1\n  # c\nd: 2\n", {("a", "b"): Comment(foot="# c")}, id="deeper-than-what-follows"),
        pytest.param("a:\n  b: 1\n# c\n\nd: 2\n", {("a",): Comment(foot="# c")}, id="foot-of-the-outer-key"),
        pytest.param("a: 1\n# c", {("a",): Comment(foot="# c")}, id="last-line-without-a-break"),
        pytest.param("a: 1\n\n# c", {(): Comment(foot="# c")}, id="end-of-the-document"),
        pytest.param("# c\n", {(): Comment(head="# c")}, id="nothing-but-a-comment"),
        pytest.param("a:\n# c\n- x\n", {("a", 0): Comment(head="# c")}, id="above-the-first-element"),
        pytest.param("-\n  # c\n  a: 1\n", {(0,): Comment(head="# c")}, id="below-a-dash"),
        pytest.param("- - x # c\n", {(0, 0): Comment(line="# c")}, id="list-in-a-list"),
        pytest.param("a: # c\n", {("a",): Comment(line="# c")}, id="no-value"),
        pytest.param("a: # c\n  x\n", {("a",): Comment(line="# c")}, id="value-on-the-next-line"),
        pytest.param("a: &x # c\n  b: 1\n", {("a",): Comment(line="# c")}, id="behind-an-anchor"),
        pytest.param("a: [x, # c\n  y]\n", {("a", 0): Comment(line="# c")}, id="inside-a-flow-list"),
        pytest.param("a: [\n  # c\n  x,\n  # d\n]\n", {("a", 0): Comment("# c", "", "# d")}, id="around-an-element"),
        pytest.param("a: [] # c\n", {("a",): Comment(line="# c")}, id="empty-flow"),
        pytest.param("? a # c\n: b\n", {("a",): Comment(line="# c")}, id="explicit-key"),
        pytest.param("a: 'x # y'\nb: \"# z\"\nc: x#y\n", {}, id="no-comments-in-strings"),
        pytest.param("--- # c\na: 1\n", {(): Comment(head="# c")}, id="behind-the-marker"),
        pytest.param("#\na: 1 #\n", {("a",): Comment(head="#", line="#")}, id="empty-comments"),
    ],
)
def test_place_decides_the_owner(text: str, expected: object) -> None:
    assert read_comments(text) == expected


@pytest.mark.parametrize(
    ("text", "path", "comment", "expected"),
    [
        pytest.param("a: 1\n", ("a",), Comment("# h", "# l", "# f"), "# h\na: 1 # l\n# f\n", id="all"),
        pytest.param("a: 1", ("a",), Comment("# h", "# l", "# f"), "# h\na: 1 # l\n# f\n", id="no-last-break"),
        pytest.param("a:\n  b: 1\n", ("a",), Comment(line="# l"), "a: # l\n  b: 1\n", id="block-mapping"),
        pytest.param("a:\n- b\n", ("a",), Comment(line="# l"), "a: # l\n- b\n", id="block-list"),
        pytest.param("a: [b]\n", ("a",), Comment(line="# l"), "a: [b] # l\n", id="flow-list"),
        pytest.param("a: [b, c]\n", ("a", 0), Comment(line="# l"), "a: [b, c]\n", id="no-room-in-flow"),
        pytest.param("a: [\n  b,\n  c]\n", ("a", 0), Comment("# h", "# l"), "a: [\n  # h\n  b, # l\n  c]\n", id="flow"),
        pytest.param("a: |\n  x\n", ("a",), Comment(line="# l"), "a: | # l\n  x\n", id="block-scalar"),
        pytest.param("- a: 1\n", (0,), Comment("# h", "# l"), "# h\n# l\n- a: 1\n", id="behind-a-dash-is-no-room"),
        pytest.param("- a: 1\n", (0, "a"), Comment("# h", "# l"), "# h\n- a: 1 # l\n", id="first-key-behind-a-dash"),
        pytest.param("-\n  a: 1\n", (0,), Comment(line="# l"), "- # l\n  a: 1\n", id="dash-alone"),
        pytest.param("a:\nb: 1\n", ("a",), Comment(line="# l"), "a: # l\nb: 1\n", id="no-value"),
        pytest.param("a:\n  b: 1\nc: 2\n", ("a", "b"), Comment(foot="# f"), "a:\n  b: 1\n  # f\n\nc: 2\n", id="foot"),
        pytest.param("a: 1\n", (), Comment("# h", "", "# f"), "# h\n\na: 1\n\n# f\n", id="document"),
        pytest.param("a: 1 # old\n", ("a",), Comment(line="# new"), "a: 1 # new\n", id="replaced"),
        pytest.param("  # old\na: 1\n", ("a",), Comment("# x\n# y"), "  # x\n  # y\na: 1\n", id="replaced-in-place"),
        pytest.param("a: 1\n", ("a",), Comment("two\nlines"), "# two\n# lines\na: 1\n", id="marks-are-added"),
        pytest.param("a: 1\n", ("a",), Comment(line="# x\n# y"), "a: 1 # x # y\n", id="one-line"),
        pytest.param("a: 1\n", ("b",), Comment("# h"), "a: 1\n", id="unknown-path"),
        pytest.param("a: 1\r\nb: 2\r\n", ("b",), Comment("# h"), "a: 1\r\n# h\r\nb: 2\r\n", id="carriage-returns"),
    ],
)
def test_comments_are_put_where_they_belong(text: str, path: tuple[str, ...], comment: Comment, expected: str) -> None:
    written = write_comments(text, {path: comment})

    assert written == expected
    assert write_comments(written, read_comments(written)) == written


def test_comment_that_would_change_the_data_is_left_out() -> None:
    """Without its line break the scalar is ``x``; with one it would be another."""
    text = "a: |\n  x"

    assert write_comments(text, {("a",): Comment(foot="# f", line="# l")}) == "a: | # l\n  x"


def test_control_characters_do_not_get_into_a_comment() -> None:
    assert write_comments("a: 1\n", {("a",): Comment(line="# \x00x\u2028y: z")}) == "a: 1 # x # y: z\n"


def test_text_that_is_no_document_is_refused() -> None:
    with pytest.raises(YamlError, match="line 1"):
        read_comments("a: b: c # d\n")


def test_reading_and_writing_are_linear() -> None:
    def seconds(count: int) -> float:
        text = "".join(f"k{n}: v # c{n}\n# head\n" for n in range(count)) + "z: 1\n"
        return processor_seconds(lambda: rewritten(text))

    def rewritten(text: str) -> None:
        comments = read_comments(text)
        write_comments(text, {path: Comment(head="# new", line=comment.line) for path, comment in comments.items()})

    seconds(500)

    assert seconds(8000) < 32 * max(seconds(1000), 0.01)


def test_data_is_untouched_by_comments_everywhere() -> None:
    everywhere = dict.fromkeys(COMMENTS, Comment("# h", "# l", "# f"))

    assert read_document(write_comments(TEXT, everywhere)) == read_document(TEXT)
