"""Thousands of captures in one place: a lake of the tables of the standard. See ``docs/scale.md``."""

from wsformat.lake.home import Lake

__all__ = ["Lake"]
