"""Paths of resources."""

import pytest

from krm.client.resources import CUSTOM_RESOURCE_DEFINITIONS, EVENTS, PACKAGE_REVISIONS, PACKAGE_VARIANTS
from krm.meta.errors import BadRequest

CONFIG = "/apis/config.porch.kpt.dev/v1alpha1"


def test_paths_name_all_objects_one_object_and_what_is_below_it() -> None:
    assert PACKAGE_VARIANTS.path(None) == f"{CONFIG}/packagevariants"
    assert PACKAGE_VARIANTS.path("ns") == f"{CONFIG}/namespaces/ns/packagevariants"
    assert PACKAGE_VARIANTS.path("ns", "a", "status") == f"{CONFIG}/namespaces/ns/packagevariants/a/status"
    assert EVENTS.path("ns", "e.1") == "/api/v1/namespaces/ns/events/e.1"
    assert PACKAGE_REVISIONS.path("ns", "r", "approval").endswith("/packagerevisions/r/approval")


def test_what_has_no_namespace_is_found_without() -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a.b"

    assert CUSTOM_RESOURCE_DEFINITIONS.path("ns", "a.b") == path
    assert CUSTOM_RESOURCE_DEFINITIONS.path(None, "a.b") == path


def test_api_versions_are_spelled_as_in_objects() -> None:
    assert EVENTS.api_version == "v1"
    assert PACKAGE_VARIANTS.api_version == "config.porch.kpt.dev/v1alpha1"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../secrets/x"])
def test_a_name_that_would_address_something_else_is_refused(name: str) -> None:
    with pytest.raises(BadRequest):
        PACKAGE_VARIANTS.path("ns", name)
    with pytest.raises(BadRequest):
        PACKAGE_VARIANTS.path(name, "a")


def test_other_signs_in_names_do_not_end_the_path() -> None:
    assert PACKAGE_VARIANTS.path("ns", "a?b#c%2F d").endswith("/packagevariants/a%3Fb%23c%252F%20d")
