"""Warp-specialised kernels that are worth profiling, with their stamps and role specs."""
