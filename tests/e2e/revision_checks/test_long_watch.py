"""Row 56 of ``kube-api.md`` 7.2: a watch through kube-apiserver survives ten minutes with bookmarks."""

from contextlib import closing

import pytest
from eventually import eventually
from long_watch import TEN_MINUTES, LongWatch
from manifests import register_remotes
from remotes import Remote

BOOKMARK_SECONDS = 60
"""Between two bookmarks; the last two may be late on a busy machine."""


@pytest.mark.clustered("it is about what lies between")
@pytest.mark.timeout(TEN_MINUTES + 300)
def test_row_56_a_watch_through_kube_apiserver_survives_ten_minutes(
    long_watch: LongWatch, empty_remote: Remote
) -> None:
    watch = long_watch.watch
    long_watch.wait()
    assert not watch.ended
    bookmarks = watch.of_type("BOOKMARK")
    with closing(long_watch.server.client()) as porch:
        register_remotes(porch, {"deployments": empty_remote})
        created = porch.create_revision("deployments", "late")
        assert created.code == 201, created.body

    def told() -> None:
        assert [one["spec"]["packageName"] for one in watch.of_type("ADDED")] == ["late"], watch.ended

    eventually(told, timeout=60)
    assert len(bookmarks) >= max(1, long_watch.seconds // BOOKMARK_SECONDS - 2)
    assert all(set(one["metadata"]) == {"resourceVersion"} for one in bookmarks)
