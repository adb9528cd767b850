"""The page docs/cli.md, made from the commands themselves: `python -m wsformat.cli.docs > docs/cli.md`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from wsformat.cli.scope import EVERY

HEAD = """# Command line

Made by `python -m wsformat.cli.docs` from the commands themselves; a test fails when the two differ.

Every command ends with 0 when it is done and with 2 when its options or its input are wrong; then one line on standard
error says what and where, a second one what to do, and nothing is written. `validate` and `spec check` end with 1 when
they find problems. Ctrl-C ends with 130. `WSFORMAT_DEBUG=1` shows the traceback of a fault of the program.

What is printed for people may change; `--json` is what programs should read. Integers are exact there, and what has no
value is `null`. In a pipe there are no colours, and nothing is ever cut short. Without `--capture`, `--launch`, `--cta`
or `--role` a command covers all of them.
"""


def page() -> str:
    """The whole page."""
    from typer.main import get_command

    from wsformat.cli.main import app

    parts = [HEAD]
    for path, command in commands(get_command(app), "wsformat"):
        parts.append(section(path, command))
    return "\n".join(parts)


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command that does something, with the words that call it, in the order of the help."""
    for name, sub in command.commands.items():
        if hasattr(sub, "commands"):
            yield from commands(sub, f"{path} {name}")
        else:
            yield f"{path} {name}", sub


def section(path: str, command: Any) -> str:
    """One command: usage, what it does, its arguments and options."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    words = " ".join((p.metavar or p.name) + ("..." if p.nargs == -1 else "") for p in arguments)
    lines = [f"## {path}", "", "```", f"{path} {words} [OPTIONS]".replace("  ", " "), "```", ""]
    lines += [inspect.cleandoc(command.help or ""), ""]
    if arguments or options:
        lines += ["| argument or option | meaning |", "| --- | --- |"]
    for parameter in arguments:
        lines.append(f"| `{parameter.metavar or parameter.name}` | {_cell(parameter.help)} |")
    for parameter in options:
        value = "" if parameter.is_flag else f" {parameter.metavar or parameter.name.upper()}"
        names = ", ".join(f"`{name}{value}`" for name in parameter.opts)
        lines.append(f"| {names} | {_cell(parameter.help)}{_default(parameter)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|").replace("\n", " ")


def _default(parameter: Any) -> str:
    # Empty text, no list, false and these numbers all mean "not given".
    if parameter.is_flag or parameter.default in (None, "", -1, EVERY, [], ()):
        return ""
    return f" (default {parameter.default})"


if __name__ == "__main__":
    print(page(), end="")
