"""What one rule allows, what rules cover, and how rights are said."""

import pytest

from apiserver.auth.rules import MAX_RIGHTS, Rule, TooManyRights, describe, missing_rights, quoted
from apiserver.machinery.request import RequestInfo

APPROVALS = {"verbs": ["update"], "apiGroups": ["porch.kpt.dev"], "resources": ["packagerevisions/approval"]}
ALL = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}


def info(verb: str, resource: str, *, group: str = "", name: str = "") -> RequestInfo:
    resource, _, subresource = resource.partition("/")
    return RequestInfo(verb, "", group=group, resource=resource, subresource=subresource, name=name)


def rule(verbs: str, resources: str = "", group: str = "", names: str = "", urls: str = "") -> dict[str, list[str]]:
    built = {"verbs": verbs.split(), "nonResourceURLs": urls.split()} if urls else {"verbs": verbs.split()}
    if resources:
        built |= {"apiGroups": [group], "resources": resources.split(), "resourceNames": names.split()}
    return built


@pytest.mark.parametrize(
    ("given", "asked", "allowed"),
    [
        pytest.param(rule("get", "configmaps"), info("get", "configmaps"), True, id="same"),
        pytest.param(rule("get", "configmaps"), info("list", "configmaps"), False, id="other-verb"),
        pytest.param(rule("get", "configmaps"), info("get", "secrets"), False, id="other-resource"),
        pytest.param(rule("get", "configmaps"), info("get", "configmaps", group="x.io"), False, id="other-group"),
        pytest.param(rule("*", "configmaps"), info("bypass-gates", "configmaps"), True, id="any-verb"),
        pytest.param(ALL, info("get", "packagerevisions/approval", group="porch.kpt.dev"), True, id="everything"),
        pytest.param(APPROVALS, info("update", "packagerevisions/approval", group="porch.kpt.dev"), True, id="sub"),
        pytest.param(APPROVALS, info("update", "packagerevisions", group="porch.kpt.dev"), False, id="parent-of-sub"),
        pytest.param(rule("get", "pods"), info("get", "pods/log"), False, id="sub-needs-its-own"),
        pytest.param(rule("get", "*/scale"), info("get", "widgets/scale"), True, id="sub-of-any"),
        pytest.param(rule("get", "*/scale"), info("get", "widgets"), False, id="sub-of-any-is-no-parent"),
        pytest.param(rule("get", "configmaps", names="a"), info("get", "configmaps", name="a"), True, id="name"),
        pytest.param(rule("get", "configmaps", names="a"), info("get", "configmaps", name="b"), False, id="other-name"),
        pytest.param(rule("create", "configmaps", names="a"), info("create", "configmaps"), False, id="no-name-yet"),
        pytest.param(rule("get", urls="/metrics"), RequestInfo("get", "/metrics"), True, id="url"),
        pytest.param(rule("get", urls="/metrics"), RequestInfo("get", "/metrics/slis"), False, id="below-url"),
        pytest.param(rule("get", urls="/apis/*"), RequestInfo("get", "/apis/x/v1"), True, id="url-prefix"),
        pytest.param(rule("get", urls="/apis/*"), RequestInfo("get", "/apis"), False, id="not-the-prefix-itself"),
        pytest.param(rule("get", urls="/apis/*"), info("get", "configmaps"), False, id="url-is-no-resource"),
        pytest.param(ALL, RequestInfo("get", "/metrics"), False, id="resources-are-no-urls"),
    ],
)
def test_a_rule_allows_what_it_names(given: dict[str, list[str]], asked: RequestInfo, allowed: bool) -> None:
    assert Rule.of(given).allows(asked) is allowed


@pytest.mark.parametrize(
    ("held", "wanted", "missing"),
    [
        pytest.param(
            [], rule("get", "configmaps"), ['{APIGroups:[""], Resources:["configmaps"], Verbs:["get"]}'], id="none"
        ),
        pytest.param([ALL], rule("get list", "configmaps secrets"), [], id="everything"),
        pytest.param(
            [rule("get", "configmaps"), rule("list", "configmaps")], rule("get list", "configmaps"), [], id="two-rules"
        ),
        pytest.param(
            [rule("get", "configmaps")],
            rule("get list watch", "configmaps"),
            ['{APIGroups:[""], Resources:["configmaps"], Verbs:["list" "watch"]}'],
            id="verbs-of-one-resource-are-said-together",
        ),
        pytest.param(
            [rule("get", "configmaps", names="a")],
            rule("get", "configmaps"),
            ['{APIGroups:[""], Resources:["configmaps"], Verbs:["get"]}'],
            id="a-name-is-not-all",
        ),
        pytest.param(
            [rule("get", "configmaps", names="a")],
            rule("get", "configmaps", names="a b"),
            ['{APIGroups:[""], Resources:["configmaps"], ResourceNames:["b"], Verbs:["get"]}'],
            id="one-of-two-names",
        ),
        pytest.param([rule("get", "configmaps")], rule("get", "configmaps", names="a b"), [], id="all-covers-names"),
        pytest.param(
            [ALL],
            rule("get", urls="/metrics"),
            ['{NonResourceURLs:["/metrics"], Verbs:["get"]}'],
            id="everything-has-no-urls",
        ),
        pytest.param([rule("get", urls="/a/*")], rule("get", urls="/a/b /a/*"), [], id="url-prefix"),
        pytest.param(
            [rule("get list", "configmaps")],
            rule("*", "configmaps"),
            ['{APIGroups:[""], Resources:["configmaps"], Verbs:["*"]}'],
            id="some-verbs-are-not-all",
        ),
    ],
)
def test_what_is_missing_is_found_and_said(
    held: list[dict[str, list[str]]], wanted: dict[str, list[str]], missing: list[str]
) -> None:
    assert describe(missing_rights([Rule.of(one) for one in held], [wanted])) == missing


def test_a_role_with_a_million_rights_is_not_taken_apart() -> None:
    many = [str(number) for number in range(100)]
    huge = {"verbs": many, "apiGroups": many, "resources": many}

    assert missing_rights([Rule.of(ALL)], [huge]) == []
    with pytest.raises(TooManyRights):
        missing_rights([], [huge])
    assert MAX_RIGHTS < 100**3


def test_texts_are_quoted_as_clients_expect() -> None:
    assert quoted(["a", 'b"\\', "\n"]) == '["a" "b\\"\\\\" "\\u000a"]'
