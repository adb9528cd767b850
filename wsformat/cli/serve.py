"""`wsformat open`: the trace of a bundle in Perfetto's viewer, served from this machine alone."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Annotated
from urllib.parse import urlsplit

import typer

from wsformat.cli.scope import BundlePath
from wsformat.errors import BadRequest

VIEWER = "https://ui.perfetto.dev"
PORT = 9001
"""The only local port that the viewer's own rules let it fetch a trace from."""
WAIT_SECONDS = 600

Port = Annotated[
    int, typer.Option("--port", metavar="N", min=0, max=65535, help="port; the public viewer fetches from 9001 only")
]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="start no browser, only print where to go")]
Origin = Annotated[str, typer.Option("--viewer", metavar="URL", help="address of the viewer")]
Seconds = Annotated[
    int, typer.Option("--seconds", metavar="N", min=0, max=10**6, help="wait at most that long for the viewer")
]


def open_(
    bundle: BundlePath,
    port: Port = PORT,
    no_browser: NoBrowser = False,
    viewer: Origin = VIEWER,
    seconds: Seconds = WAIT_SECONDS,
) -> None:
    """Show a bundle in Perfetto's viewer: serves the trace from 127.0.0.1 until the viewer has fetched it.

    The trace goes from this machine to the browser and nowhere else. Over ssh it prints what to do.
    """
    from wsformat.cli import scope as scopes
    from wsformat.converters import perfetto

    origin = origin_of(viewer)
    opened = scopes.open_bundle(bundle)
    with tempfile.TemporaryDirectory(prefix="wsformat-") as folder:
        trace = Path(folder) / "trace.pftrace"
        report = perfetto.write(opened, trace, {})
        fetched = Event()
        with listening(trace, port, origin, fetched) as found:
            address = f"{viewer.rstrip('/')}/#!/?url=http://127.0.0.1:{found}/trace.pftrace"
            print(f"{report['slices']:,} slices, {report['flows']:,} arrows, {report['bytes']:,} bytes.")
            print(f"Open {address}", flush=True)
            if over_ssh():
                print(
                    f"You are on a remote machine: on yours, run ssh -L {found}:127.0.0.1:{found} HOST, then open it.",
                    flush=True,
                )
            elif not no_browser:
                import webbrowser

                webbrowser.open(address)
            print("Waiting for the viewer to fetch it; Ctrl-C ends.", file=sys.stderr)
            if not fetched.wait(seconds):
                raise BadRequest(f"nobody fetched the trace within {seconds} s", "Open the address above in a browser.")
        print("fetched")


def over_ssh() -> bool:
    """Whether this terminal belongs to a remote login."""
    return bool(os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"))


def origin_of(viewer: str) -> str:
    """Scheme, host and port of an address, as browsers name where a page is from.

    Raises:
        BadRequest: no address of a page.
    """
    try:
        parts = urlsplit(viewer)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # brackets that do not close, a port above 65535
        good = False
    if not good or not viewer.isprintable() or " " in viewer or "@" in parts.netloc:
        raise BadRequest(f"--viewer {viewer}: no address of a viewer", f"It looks like {VIEWER}.")
    return f"{parts.scheme}://{parts.netloc}"


@contextmanager
def listening(trace: Path, port: int, origin: str, fetched: Event) -> Iterator[int]:
    """A server on 127.0.0.1 that gives this one file to pages of one origin; gives its port.

    Args:
        trace: the file, known to the outside as /trace.pftrace and under no other name.
        port: 0 for any that is free.
        origin: whose pages may read the answers.
        fetched: set when all of the file was sent.

    Raises:
        BadRequest: the port is taken or not allowed.
    """
    # A tenth of what `wsformat --help` takes, and needed here alone.
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.refused():
                return
            self.answer(200, trace.stat().st_size)
            with trace.open("rb") as file:
                while block := file.read(1 << 20):
                    self.wfile.write(block)
            fetched.set()

        def do_HEAD(self) -> None:
            if not self.refused():
                self.answer(200, trace.stat().st_size)

        def do_OPTIONS(self) -> None:
            # Browsers ask before a public page may reach into this machine.
            if not self.refused():
                self.answer(204, 0)

        def refused(self) -> bool:
            """Other names of this machine (a page could point its own name here) and other files."""
            here = {f"{name}:{server.server_port}" for name in ("127.0.0.1", "localhost")}
            if self.headers.get("Host") not in here:
                self.send_error(403)
            elif self.path.split("?")[0] != "/trace.pftrace":
                self.send_error(404)
            else:
                return False
            return True

        def answer(self, code: int, size: int) -> None:
            self.send_response(code)
            self.send_header("Access-Control-Allow-Origin", origin)
            self.send_header("Access-Control-Allow-Methods", "GET, HEAD")
            self.send_header("Access-Control-Allow-Private-Network", "true")
            self.send_header("Cache-Control", "no-cache")
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(size))
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Requests are nobody's business."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A browser that goes away in the middle may come again."""

    try:
        server = Server(("127.0.0.1", port), Handler)
    except (OSError, OverflowError) as error:
        raise BadRequest(f"port {port}: {error}", "Stop what listens there, or choose another with --port.") from error
    with server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        thread.start()
        try:
            yield int(server.server_port)
        finally:
            server.shutdown()
            thread.join()
