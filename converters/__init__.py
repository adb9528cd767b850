"""Converters between foreign formats and bundles: one file a format, listed in the registry."""
