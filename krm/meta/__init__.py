"""What every Kubernetes object has: metadata, conditions, names, selectors, errors."""
