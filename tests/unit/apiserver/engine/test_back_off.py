"""How long a repository waits after a failure."""

from apiserver.engine.back_off import BackOff, UnsupportedRepository
from storage.git.errors import AuthenticationFailed, DiskFull, RemoteUnavailable


def test_the_delay_doubles_up_to_a_bound_and_begins_anew_after_a_success() -> None:
    back_off, down = BackOff(), RemoteUnavailable("address", "connection refused")

    assert [back_off.after(down) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    back_off.reset()
    assert back_off.after(down) == 1


def test_refused_credentials_are_tried_rarely() -> None:
    back_off = BackOff()

    assert [back_off.after(AuthenticationFailed()) for _ in range(8)] == [10, 20, 40, 80, 160, 320, 600, 600]


def test_another_kind_of_failure_begins_with_its_own_delay() -> None:
    back_off = BackOff()
    for _ in range(5):
        back_off.after(AuthenticationFailed())

    assert back_off.after(RemoteUnavailable("address", "timed out")) == 1
    assert back_off.after(DiskFull()) == 1


def test_what_only_its_object_can_mend_is_hardly_tried_again() -> None:
    assert BackOff().after(UnsupportedRepository("oci")) == 3600
