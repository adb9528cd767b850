"""`wsformat open`: one file, from 127.0.0.1, for the viewer's origin, until it was fetched."""

from __future__ import annotations

import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from trace_cases import nasty

from wsformat.cli.serve import over_ssh


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = nasty()["overlap"].write(tmp_path / "x.wsformat").path
    assert path is not None
    return path


def start(bundle: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "wsformat", "open", str(bundle), "--no-browser", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_serves_the_trace_once_to_the_viewer(bundle: Path) -> None:
    port = free_port()
    process = start(bundle, "--port", str(port))
    assert process.stdout is not None
    assert process.stdout.readline().startswith("4 slices")
    address = process.stdout.readline()
    assert f"https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{port}/trace.pftrace" in address
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/../etc/passwd", timeout=30)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/trace.pftrace", timeout=30) as answer:
        assert answer.headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"
        data = answer.read()
    rest, errors = process.communicate(timeout=60)
    assert (process.returncode, rest) == (0, "fetched\n"), errors
    assert data[0] == 0x0A
    assert b"overlap 1" in data


def test_nobody_comes(bundle: Path) -> None:
    process = start(bundle, "--port", str(free_port()), "--seconds", "0")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "error: nobody fetched the trace" in errors


def test_a_taken_port_is_said(bundle: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = start(bundle, "--port", str(taken.getsockname()[1]))
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "error: port " in errors
    assert "Traceback" not in errors


def test_remote_logins_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_TTY", raising=False)
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    assert not over_ssh()
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 1 10.0.0.2 22")
    assert over_ssh()
