"""The single source of the standard, as data only: tables, vocabularies, rules, views, layout.

Read it with :mod:`wsformat.tables`; other languages can read the JSON and SQL files as they are.
"""
