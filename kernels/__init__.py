"""Device stamp headers, the host recorder and example kernels."""
