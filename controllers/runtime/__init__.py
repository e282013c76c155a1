"""What every controller needs and nothing else: queue, workers, leadership, status and Events, health.

The contract is controller-runtime's. No decorators, no registry, no discovery: a controller is wired in plain sight in
``controllers.composition``. Source: ``architecture.md`` 3.7.
"""
