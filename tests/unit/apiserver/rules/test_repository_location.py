"""How addresses of one repository are recognised, and which claims on it conflict (the e2e tests register them)."""

import pytest

from apiserver.rules.repository_location import claim_of, normalised_address


@pytest.mark.parametrize(
    "written",
    [
        "https://git.example/team/blueprints.git",
        "https://git.example/team/blueprints",
        "https://git.example/team/blueprints/",
        "https://GIT.example:443/team//blueprints.git/",
        "http://git.example:80/team/blueprints",
        "ssh://git@git.example/team/blueprints.git",
        "ssh://git@git.example:22/team/blueprints.git",
        "git@git.example:team/blueprints.git",
        "https://git.example/team%2Fblueprints",
    ],
)
def test_one_repository_has_many_addresses(written: str) -> None:
    assert normalised_address(written) == "git.example/team/blueprints"


@pytest.mark.parametrize(
    "other",
    [
        "https://git.example/Team/blueprints",
        "https://git.example:8443/team/blueprints",
        "https://git.example/team/blueprints.git.git",
        "https://example/team/blueprints",
        "file:///git.example/team/blueprints",
        "https://git.example:port/team/blueprints",
    ],
)
def test_others_are_told_apart(other: str) -> None:
    assert normalised_address(other) != "git.example/team/blueprints"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"metadata": {}, "spec": None},
        {"metadata": {}, "spec": {"git": "x"}},
        {"metadata": {}, "spec": {"git": {"repo": 5}}},
        {"metadata": {}, "spec": {"git": {"repo": "x", "directory": ["a"]}}},
        {"metadata": {}, "spec": {"oci": {"registry": "x"}}},
    ],
)
def test_what_is_no_git_repository_claims_nothing(body: dict[str, object]) -> None:
    assert claim_of(body) is None
