"""The page docs/interchange.md, made from what each converter declares: `python -m wsformat.converters.interchange`."""

from __future__ import annotations

from types import ModuleType

from wsformat.converters import import_mapping, registry
from wsformat.tables import tables

HEAD = """# Interchange: what each format can and cannot carry

Made by `python -m wsformat.converters.interchange` from the declarations of the converters; a test fails when the two
differ. A mark says that a reader may fill the table from that format, or that a writer makes use of it; everything else
stays behind, and what a format loses or makes an importer assume is listed below it. What one import lost is in the
bundle itself: attributes `import.*` of the capture, and findings of kind `message`.
"""

STATES = """## States, roles and edges of imported traces

No trace format says which interval is work and which is a wait. Without a mapping every imported span is a `scope`, and
nothing is called a stall by its name. A mapping (`-O mapping=PRESET` or a JSON or TOML file, described by
`schema/import_mapping.schema.json`) gives names, states, roles and edges by globs on names; the preset's name is kept
with the source in the manifest.

* `renames`: one name that fires several times an iteration is told apart by the span before it on its lane.
* `roles`: which lanes play a role; `spans`: the state of a span, what it waits on, its resource.
* `dependencies`: who waits for whom, in the words of the role spec ([rolespec.md](rolespec.md)); points of a span are
  `SPAN.begin` and `SPAN.end`, iterations are the ordinals of its name in its lane. With them each wait gets a verdict.

Rules that fit nothing, and spans that no rule names, are listed with the import. A mapping of which nothing fits is
refused.

| preset | for |
| --- | --- |"""


def page() -> str:
    """The whole page."""
    names = list(dict.fromkeys(registry.READERS + registry.WRITERS))
    modules = {name: registry.converter(name) for name in names}
    parts = [HEAD, matrix(modules), ""]
    parts += [section(name, module) for name, module in modules.items()]
    rows = [f"| `{name}` | {_cell(preset['description'])} |" for name, preset in import_mapping.presets().items()]
    return "\n".join([*parts, STATES, *rows]) + "\n"


def matrix(modules: dict[str, ModuleType]) -> str:
    """Tables of the standard by formats and directions."""
    columns = [
        (f"{name} {way}", set(module.CARRIES[way])) for name, module in modules.items() for way in module.CARRIES
    ]
    lines = ["| table | " + " | ".join(label for label, _ in columns) + " |", "| --- |" + " --- |" * len(columns)]
    for table in tables():
        marks = " | ".join("yes" if table in carried else "" for _, carried in columns)
        lines.append(f"| `{table}` | {marks} |")
    return "\n".join(lines)


def section(name: str, module: ModuleType) -> str:
    """One format: files, options, what is lost or assumed."""
    ways = " and ".join(module.CARRIES)
    lines = [f"## {name} ({ways}): {module.TITLE}", "", f"Files: {', '.join(f'`{e}`' for e in module.EXTENSIONS)}.", ""]
    lines += [f"* {loss}" for loss in module.LOSSES]
    lines += ["", "| option | meaning |", "| --- | --- |"]
    lines += [f"| `{option}` | {_cell(meaning)} |" for option, meaning in module.OPTIONS.items()]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    print(page(), end="")
