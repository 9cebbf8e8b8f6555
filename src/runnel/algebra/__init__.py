"""The operator tree a query becomes: nodes, scalars, traversal, printing."""
