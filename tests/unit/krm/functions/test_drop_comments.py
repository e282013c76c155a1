from function_run import resources_of, run_function, text_after


def test_comments_that_a_function_drops_are_restored() -> None:
    text = (
        "# head\n\napiVersion: v1 # a\nkind: A\n# above\nmetadata: # m\n  name: 'x # no comment' # n\n  # foot\n"
        "spec:\n  - a # b\n  # above\n  - |\n    # no comment\n"
    )

    assert text_after("drop-comments", text) == text


def test_nothing_is_reported() -> None:
    assert (
        run_function("drop-comments", resources_of("apiVersion: v1 # a\nkind: A\nmetadata:\n  name: x\n")).results == []
    )
