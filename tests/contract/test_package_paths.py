"""What a package may contain is what Git takes: a path that passes one check must not fail by the other."""

from hypothesis import given, settings
from hypothesis import strategies as st

from krm.package.contents import path_problem
from storage.git.paths import check_path

SEGMENTS = st.text(alphabet=" .:~1$\\gitGIT\u200c\ufeffaé\u0130", min_size=1, max_size=8)
PATHS = st.lists(SEGMENTS, min_size=1, max_size=40).map("/".join)


@settings(max_examples=500, deadline=None)
@given(PATHS)
def test_git_takes_every_path_that_a_package_may_have(path: str) -> None:
    if not path_problem(path):
        assert check_path(path) == path
