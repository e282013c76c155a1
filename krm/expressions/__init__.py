"""CEL, the expression language of Kubernetes: by celpy, corrected and bounded."""
