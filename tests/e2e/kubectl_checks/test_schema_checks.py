"""What is invalid, as kubectl tells it: row 19 of ``kube-api.md`` 7.2."""

import pytest
from kubectl import Kubectl

SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"


@pytest.mark.parametrize("name", ["A_b", "-a", "a..b"])
def test_row_19_an_invalid_name_is_told_as_the_field_that_it_is(kubectl: Kubectl, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}

    refused = kubectl("create", "-f", "-", stdin=body)

    assert refused.returncode == 1
    assert refused.stderr.startswith(
        f'The ConfigMap "{name}" is invalid: metadata.name: Invalid value: "{name}": {SUBDOMAIN}'
    )


def test_several_problems_become_a_bullet_each(kubectl: Kubectl) -> None:
    metadata = {"name": "A_b", "labels": {"a b": "c"}, "finalizers": ["example.com/x y"]}

    refused = kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

    first, *bullets = refused.stderr.splitlines()
    assert first == 'The ConfigMap "A_b" is invalid: '
    assert [bullet.split(":")[0] for bullet in bullets[:3]] == [
        "* metadata.name",
        "* metadata.labels",
        "* metadata.finalizers",
    ]
