"""``set-enforcement-action``: whether Gatekeeper's policies deny, warn or only report.

Source: ``kpt.md`` 4.16.
"""

from typing import Any

from krm.functions.builtin import Builtin, Option
from krm.functions.catalog.config_values import text_map
from krm.functions.runner import FunctionConfig, FunctionResult, ResourceList
from krm.package.resource_identity import identity_of

_KEY = "enforcementAction"
_ACTIONS = ("deny", "warn", "dryrun")
_CONSTRAINT = "constraints.gatekeeper.sh/v1beta1"


class _PolicyError(Exception):
    """The action cannot be set."""


def set_enforcement_action(resources: ResourceList) -> FunctionResult:
    """Run the function; policies that have the action already are counted too."""
    try:
        action = _action(resources.config)
        policies = [item.data for item in resources.items if item.data.get("apiVersion") == _CONSTRAINT]
        for policy in policies:
            _set(policy, action)
    except _PolicyError as error:
        message = f"failed to process policies: {error}"
        return FunctionResult.failure(resources, [{"message": message, "severity": "error"}], f"[error]: {message}")
    if not policies:
        return FunctionResult(resources.items, [_result(f"Found no policy to set to [{action}]", "warning")])
    results = [_result(f"Number of policies set to [{action}]: {len(policies)}")]
    results += [_result(f"Policy name: [{identity_of(policy).name}]") for policy in policies]
    return FunctionResult(resources.items, results)


def _action(config: FunctionConfig | None) -> str:
    given = text_map(config, "data") if config else {}
    if len(given) != 1:
        raise _PolicyError(f"expecting exactly 1 {_KEY} as part of the ConfigMap")
    action = given.get(_KEY, "")
    if action not in _ACTIONS:
        expected = " or ".join(f"[{known}]" for known in _ACTIONS)
        raise _PolicyError(f"expected values for {_KEY} are {expected}")
    return action


def _set(policy: dict[str, Any], action: str) -> None:
    if policy.get("spec") is None:
        policy["spec"] = {}
    spec = policy["spec"]
    if not isinstance(spec, dict):
        raise _PolicyError(f"the spec of policy {identity_of(policy).name} is not a map")
    spec[_KEY] = action


def _result(message: str, severity: str = "info") -> dict[str, Any]:
    return {"message": message, "severity": severity}


FUNCTION = Builtin(
    name="set-enforcement-action",
    run=lambda resources, *_: set_enforcement_action(resources),
    summary="Sets what Gatekeeper does about violations of the package's policies.",
    source="kpt.md 4.16",
    tags=("v0.1.0",),
    config_kinds=("ConfigMap",),
    options=(Option(f"data.{_KEY}", "deny, warn or dryrun", required=True),),
)
