"""Everything that shows or judges a bundle. A viewer reads a Bundle and nothing else."""
