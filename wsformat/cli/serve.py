"""`wsformat open`: the trace of a bundle in Perfetto's viewer, served from this machine alone."""

from __future__ import annotations

import os
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Annotated

import typer

from wsformat.cli.scope import BundlePath
from wsformat.errors import BadRequest

VIEWER = "https://ui.perfetto.dev"
PORT = 9001
"""The only local port that the viewer's own rules let it fetch a trace from."""
WAIT_SECONDS = 600

Port = Annotated[int, typer.Option("--port", metavar="N", help="port; the public viewer fetches from 9001 only")]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="start no browser, only print where to go")]
Origin = Annotated[str, typer.Option("--viewer", metavar="URL", help="address of the viewer")]
Seconds = Annotated[int, typer.Option("--seconds", metavar="N", help="wait at most that long for the viewer")]


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

    opened = scopes.open_bundle(bundle)
    with tempfile.TemporaryDirectory(prefix="wsformat-") as folder:
        trace = Path(folder) / "trace.pftrace"
        report = perfetto.write(opened, trace, {})
        fetched = Event()
        with listening(trace, port, viewer, fetched) as server:
            address = f"{viewer}/#!/?url=http://127.0.0.1:{server.server_address[1]}/trace.pftrace"
            print(f"{report['slices']:,} slices, {report['flows']:,} arrows, {report['bytes']:,} bytes.")
            print(f"Open {address}", flush=True)
            if over_ssh():
                print(f"You are on a remote machine: on yours, run ssh -L {port}:127.0.0.1:{port} HOST, then open it.")
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


def listening(trace: Path, port: int, viewer: str, fetched: Event) -> ThreadingHTTPServer:
    """A server on 127.0.0.1 that gives this one file to pages of the viewer's origin.

    Raises:
        BadRequest: the port is taken or not allowed.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.split("?")[0] != "/trace.pftrace":
                self.send_error(404)
                return
            self.answer()
            with trace.open("rb") as file:
                while block := file.read(1 << 20):
                    self.wfile.write(block)
            fetched.set()

        def do_HEAD(self) -> None:
            self.answer()

        def answer(self) -> None:
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", viewer)
            self.send_header("Cache-Control", "no-cache")
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(trace.stat().st_size))
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Requests are nobody's business."""

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except (OSError, OverflowError) as error:
        raise BadRequest(f"port {port}: {error}", "Stop what listens there, or choose another with --port.") from error
    Thread(target=server.serve_forever, daemon=True).start()
    return server
