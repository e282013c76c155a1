"""The function ``kubeval``, the predecessor of ``kubeconform``, with the same engine. Source: ``kpt.md`` 4.18."""

from krm.functions.catalog.kubeconform import kubeconform

FUNCTION = kubeconform(name="kubeval")
