from function_run import resources_of, run_function, text_after


def test_no_comment_is_left_and_all_else_stays() -> None:
    text = (
        "# head\n\napiVersion: v1 # a\nkind: A\n# above\nmetadata: # m\n  name: 'x # no comment' # n\n  # foot\n"
        "spec:\n  - a # b\n  # above\n  - |\n    # no comment\n"
    )

    after = text_after("drop-comments", text)

    assert [line for line in after.split("\n") if line.strip()] == [
        "apiVersion: v1",
        "kind: A",
        "metadata:",
        "  name: 'x # no comment'",
        "spec:",
        "  - a",
        "  - |",
        "    # no comment",
    ]


def test_resource_without_comments_keeps_every_byte() -> None:
    text = "apiVersion:   v1\nkind: A\n\n\nmetadata: {name:   'x#y'}"

    assert text_after("drop-comments", text) == text


def test_nothing_is_reported() -> None:
    assert (
        run_function("drop-comments", resources_of("apiVersion: v1 # a\nkind: A\nmetadata:\n  name: x\n")).results == []
    )
