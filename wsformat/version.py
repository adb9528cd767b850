"""Version of this library. The version of the format is in ``schema/tables.json``."""

__version__ = "0.1.0"
