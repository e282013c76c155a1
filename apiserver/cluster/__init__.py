"""What a server behind kube-apiserver has of its cluster: Repositories, namespaces, Secrets, Events, and whom it trusts."""
