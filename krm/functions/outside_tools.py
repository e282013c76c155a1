"""Functions of the catalog that are not built in, and what would run them. Source: ``kpt.md`` 4.18.

They need a tool of their own (Helm, a Rego engine, Terraform, a cloud's services) and are left to executables and
containers; errors about them say so.
"""

OUTSIDE_TOOLS = {
    "analyze-istio": "istioctl",
    "annotate-apply-time-mutations": "its container image",
    "bind": "its container image",
    "export-terraform": "its container image, which holds the mapping to Terraform's providers",
    "gatekeeper": "a Rego engine (Open Policy Agent)",
    "generate-folders": "its container image",
    "generate-kpt-pkg-docs": "its container image",
    "render-helm-chart": "the helm command, and network access to fetch charts",
    "set-gcp-resource-ids": "its container image",
    "sops": "the sops command and its keys",
    "source-gcloud-config": "the gcloud command and its credentials",
}
"""Name of the function, and what it works with."""


def outside_tool(base: str) -> str:
    """Return what the function ``base`` needs, for an error about it; empty for names the catalog does not have."""
    tool = OUTSIDE_TOOLS.get(base)
    return f"it is not built in, because it works with {tool}" if tool else ""
