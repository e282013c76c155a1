"""How the fields are named in which the database and Git differ (the e2e tests compare real ones)."""

from apiserver.engine.git_check import differing


def test_only_fields_that_differ_are_named_with_their_path() -> None:
    here = {"spec": {"lifecycle": "Draft", "tasks": [{"type": "init"}], "same": 1}, "status": {"deployment": True}}
    there = {"spec": {"lifecycle": "Proposed", "tasks": [], "same": 1}, "status": {}}

    assert list(differing(here, there)) == [
        ("spec.lifecycle", '"Draft"', '"Proposed"'),
        ("spec.tasks", '[{"type":"init"}]', "[]"),
        ("status.deployment", "true", "nothing"),
    ]


def test_long_values_are_cut() -> None:
    ((_, here, _),) = differing({"text": "x" * 1000}, {"text": ""})

    assert len(here) == 121
