"""How a command ends: every failure becomes one line on stderr and an exit code, never a traceback.

0    done
1    `validate` and `spec check`: findings
2    wrong options, bad input, or a fault of this program; nothing was written
130  interrupted (Ctrl-C); nothing was left half-written
141  the reader of the pipe went away
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from wsformat.cli.interrupt import INTERRUPTED, MESSAGE, pressed
from wsformat.errors import WsformatError

FINDINGS = 1
FAILED = 2
PIPE_CLOSED = 141
LONG_WORD = re.compile(r"\S{400,}")

# Typer carries its own copy of click in newer versions and imports click in older ones: this class is in both.
_UsageFailure: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


def one_line(text: str) -> str:
    """Text of an exception on one line; DuckDB and Arrow write several, some of them only a caret."""
    lines = (line.strip() for line in text.splitlines())
    return "; ".join(line for line in lines if line.strip("^~ "))


def shown(text: str) -> str:
    """One line for a terminal: no control or direction characters, and no word that fills the screen.

    Names in a message come from files and from the command line: escape sequences in them must not act, and of a name
    of ten thousand characters the ends tell which it is. Paths are at most 4,096 characters long, most below 400.
    """
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in one_line(text))
    return LONG_WORD.sub(lambda word: f"{word[0][:150]}…{word[0][-50:]}", safe)


def say_error(message: str, hint: str = "") -> None:
    """Write `error: …` and, when there is one, `hint: …` to stderr."""
    print(f"error: {shown(message)}", file=sys.stderr)
    if hint:
        print(f"hint: {shown(hint)}", file=sys.stderr)


def _say_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"warning: {shown(str(message))}", file=sys.stderr)


class Commands(TyperGroup):
    """The group of all commands; turns exceptions into lines and exit codes."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line; see the module for the exit codes."""
        run = super().main
        if not standalone_mode:
            return run(args, prog_name, complete_var, False, windows_expand_args, **extra)
        code = FAILED
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("default", category=UserWarning)
                warnings.showwarning = _say_warning
                result = run(args, prog_name, complete_var, False, windows_expand_args, **extra)
            code = result if isinstance(result, int) else 0
            if not code:
                sys.stdout.flush()
        except _UsageFailure as error:
            code = _usage_failure(error)
        except BrokenPipeError:
            code = _pipe_closed()
        except OSError as error:
            # Help goes to standard output before any command of ours runs.
            _fault(error)
            _drop_output()
        except typer.Abort:
            say_error(MESSAGE)
            code = INTERRUPTED
        sys.exit(code)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; the exceptions of our own work end here."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except WsformatError as error:
            say_error(error.message, error.hint)
        except KeyboardInterrupt:
            say_error(MESSAGE)
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            raise typer.Exit(_pipe_closed()) from None
        except (_UsageFailure, typer.Exit, typer.Abort):
            raise
        except Exception as error:
            if _is_interrupt(error):
                say_error(MESSAGE)
                raise typer.Exit(INTERRUPTED) from None
            if os.environ.get("WSFORMAT_DEBUG"):
                raise
            _fault(_of_a_table_file(error) or error)
        else:
            return result
        raise typer.Exit(FAILED)


def _pipe_closed() -> int:
    _drop_output()
    return PIPE_CLOSED


def _drop_output() -> None:
    """What is still buffered must not meet the closed pipe or the full disk again when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _is_interrupt(error: Exception) -> bool:
    """DuckDB has its own exceptions for a query that Ctrl-C ended; pydantic puts it into the words of its own."""
    told = str(error)
    own = type(error).__name__ == "InterruptException" or told == "Query interrupted"
    return own or "KeyboardInterrupt" in told or pressed()


def _of_a_table_file(error: Exception) -> WsformatError | None:
    """Pictures, reports and exports read in many ways; a column of a wrong type ends them all in the same words."""
    if type(error).__name__ != "ConversionException":
        return None
    from wsformat.derive import misfit

    return misfit(error)


def _fault(error: Exception) -> None:
    if isinstance(error, WsformatError):
        say_error(error.message, error.hint)
        return
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        say_error(f"{place}{error.strerror}")
        return
    if isinstance(error, MemoryError):
        say_error("not enough memory", "Choose fewer launches or CTAs, or run on a larger machine.")
        return
    say_error(
        f"unexpected {type(error).__name__}: {str(error) or 'no message'}",
        "This is a fault of wsformat. Run it again with WSFORMAT_DEBUG=1 for the details and report them.",
    )


def _usage_failure(error: Any) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return FAILED
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "wsformat"
    say_error(error.format_message(), f"Options: `{command} --help`.")
    return FAILED
