"""The normative SQL of the derived views, one file a view, run in the order of their numbers."""
