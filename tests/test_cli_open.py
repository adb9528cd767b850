"""`wsformat open`: one file, from 127.0.0.1, for the viewer's origin, until it was fetched."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest
from trace_cases import nasty

from wsformat.cli.serve import PORT, over_ssh


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = nasty()["overlap"].write(tmp_path / "x.wsformat").path
    assert path is not None
    return path


def start(bundle: Path, *options: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "wsformat", "open", str(bundle), "--no-browser", *options]
    both = {**os.environ, **(env or {})}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=both)


def test_serves_the_trace_once_to_the_viewer(bundle: Path) -> None:
    port = free_port()
    process = start(bundle, "--port", str(port))
    assert process.stdout is not None
    assert process.stdout.readline().startswith("4 slices")
    address = process.stdout.readline()
    assert f"https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{port}/trace.pftrace" in address
    for method in ("GET", "HEAD", "OPTIONS"):
        for path in ("/../etc/passwd", "/", "/trace.pftrace/x", "/x.pftrace"):
            assert ask(port, method, path)[0] == 404, (method, path)
        for host in (f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "ui.perfetto.dev"):
            assert ask(port, method, "/trace.pftrace", host=host)[0] == 403, (method, host)
    assert ask(port, "POST", "/trace.pftrace")[0] == 501
    status, headers = ask(port, "OPTIONS", "/trace.pftrace")
    assert (status, headers["Access-Control-Allow-Private-Network"]) == (204, "true")
    assert headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"
    # A browser that goes away in the middle: the server waits for it to come again.
    with socket.create_connection(("127.0.0.1", port)) as gone:
        gone.sendall(f"GET /trace.pftrace HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n".encode())
    assert process.poll() is None
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/trace.pftrace", timeout=30) as answer:
        assert answer.headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"
        data = answer.read()
    rest, errors = process.communicate(timeout=60)
    assert (process.returncode, rest) == (0, "fetched\n"), errors
    assert data[0] == 0x0A
    assert b"overlap 1" in data


def ask(port: int, method: str, path: str, host: str = "") -> tuple[int, http.client.HTTPMessage]:
    """Status and headers of the answer to one request, its path as it is."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", host or f"127.0.0.1:{port}")
        connection.endheaders()
        with connection.getresponse() as answer:
            return answer.status, answer.headers


def test_listens_on_this_machine_alone(bundle: Path) -> None:
    process = start(bundle, "--port", "0")
    assert process.stdout is not None
    process.stdout.readline()
    port = int(process.stdout.readline().split("127.0.0.1:")[1].split("/")[0])
    listening = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
    found = [line.split()[1] for line in listening.splitlines()[1:] if line.split()[1].endswith(f":{port:04X}")]
    assert set(found) == {f"0100007F:{port:04X}"}
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)


def test_ctrl_c_ends_it_and_leaves_nothing(bundle: Path, tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    process = start(bundle, "--port", "0", env={"TMPDIR": str(folder)})
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.readline()
    assert len(list(folder.iterdir())) == 1
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=60)
    assert (process.returncode, rest) == (130, "")
    assert "Traceback" not in errors
    assert errors.splitlines()[-1].startswith("error: interrupted")
    assert list(folder.iterdir()) == []


def test_over_ssh_it_says_what_to_do(bundle: Path) -> None:
    command = [sys.executable, "-m", "wsformat", "open", str(bundle), "--port", "0"]
    env = {**os.environ, "SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22", "BROWSER": "/bin/false"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    process.stdout.readline()
    port = process.stdout.readline().split("127.0.0.1:")[1].split("/")[0]
    said = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert f"ssh -L {port}:127.0.0.1:{port} HOST" in said


@pytest.mark.parametrize(
    "viewer",
    [
        "ui.perfetto.dev",
        "file:///x",
        "",
        "https://",
        "http://[::1",
        "http://h:99999999",
        "https://a\nb",
        "https://u:p@h",
        "https://a b",
    ],
)
def test_no_address_of_a_viewer(bundle: Path, viewer: str) -> None:
    _, errors = start(bundle, "--viewer", viewer).communicate(timeout=60)
    assert errors.startswith("error: --viewer")
    assert "https://ui.perfetto.dev" in errors


@pytest.mark.client
def test_the_viewer_itself_fetches_it(bundle: Path, tmp_path: Path) -> None:
    """From another origin, under its own rules: the default port is the only one that they allow."""
    from trace_browser import page, served, shown, site

    with served(site(tmp_path / "viewer")) as address, page() as tab:
        process = start(bundle, "--viewer", address + "/")
        assert process.stdout is not None
        process.stdout.readline()
        printed = process.stdout.readline().removeprefix("Open ").strip()
        assert printed == f"{address}/#!/?url=http://127.0.0.1:{PORT}/trace.pftrace"
        tab.goto(printed)
        tab.wait_for_selector(".pf-track", timeout=180_000)
        rest, errors = process.communicate(timeout=60)
        assert (process.returncode, rest) == (0, "fetched\n"), errors
        tab.evaluate("() => app.commands.runCommand('dev.perfetto.ExpandAllGroups')")
        tab.wait_for_function("() => document.querySelectorAll('.pf-track').length > 5", timeout=60_000)
        assert "r warp 0 / overlap 1" in [name for _, name in shown(tab)]


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


@pytest.mark.parametrize(
    ("option", "value"),
    [("--port", "-1"), ("--port", "65536"), ("--port", "9" * 20), ("--seconds", "-1"), ("--seconds", "9" * 20)],
)
def test_numbers_out_of_range(bundle: Path, option: str, value: str) -> None:
    """--seconds of twenty digits ended as a fault of wsformat, after the trace was made."""
    with start(bundle, option, value) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert err.startswith(f"error: Invalid value for '{option}'")
    assert "fault of wsformat" not in err
    assert len(err.splitlines()) == 2
