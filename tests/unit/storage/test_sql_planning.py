"""What a batch writes into the outbox: few statements, in an order in which nothing of a later change is lost."""

from storage.outbox import GitObject, OutboxChange
from storage.sql.planning import OutboxStep, outbox_steps

BLOB = GitObject("blob", b"text", "0" * 40)


def shown(steps: list[OutboxStep]) -> list[tuple[str, list[str]]]:
    """Return each statement and the parcels that it is run for."""
    return [(step.statement, [row["revision"] for row in step.rows]) for step in steps]


def test_changes_of_different_parcels_share_their_statements() -> None:
    saved = [OutboxChange("default/blueprints", f"draft-{number}", objects=[BLOB, BLOB]) for number in range(3)]
    published = [OutboxChange("default/blueprints", f"published-{number}", drop=True) for number in range(2)]

    steps = outbox_steps([saved[0], published[0], *saved[1:], published[1]], 7)

    drafts = ["draft-0", "draft-1", "draft-2"]
    assert shown(steps) == [
        ("drop_parcel", ["published-0", "published-1"]),
        ("touch_parcel", drafts),
        ("put_object", sorted(drafts * 2)),
    ]
    assert {row["version"] for step in steps[1:] for row in step.rows} == {7}


def test_a_parcel_that_is_begun_anew_is_dropped_first() -> None:
    anew = OutboxChange("default/blueprints", "draft", seen={}, objects=[BLOB], drop=True)

    assert [step.statement for step in outbox_steps([anew], 1)] == ["drop_parcel", "touch_parcel", "put_object"]


def test_changes_of_one_parcel_keep_their_order() -> None:
    saved = OutboxChange("default/blueprints", "draft", objects=[BLOB])
    dropped = OutboxChange("default/blueprints", "draft", drop=True)
    other = OutboxChange("default/others", "draft", objects=[BLOB])

    assert shown(outbox_steps([saved, other, dropped, saved], 1)) == [
        ("touch_parcel", ["draft", "draft"]),
        ("put_object", ["draft", "draft"]),
        ("drop_parcel", ["draft"]),
        ("touch_parcel", ["draft"]),
        ("put_object", ["draft"]),
    ]


def test_nothing_changed_is_no_statement() -> None:
    assert outbox_steps([], 1) == []
