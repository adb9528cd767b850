"""Real stamp buffers that ship with the package."""
