"""`mpiio-ext top --serve`: who gets an answer, what the browser may do, what the page shows."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from mpiio_ext.top import serve, snapshot
from support.html_page import Page
from support.live_pages import content, hold, holding


@pytest.fixture
def server() -> Iterator[serve.Server]:
    word = f"only-here-{os.getpid()}"  # a test before may have made this process a rank, with a page of its own
    held = hold(content(files=2, program="<script>alert(1)</script>", command=f"./app {word}"))
    one = serve.Server(serve.Model(snapshot.Follower(snapshot.Watch(), word), 1.0), 0)
    thread = threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield one
    one.shutdown()
    one.server_close()
    os.close(held)


def ask(server: serve.Server, path: str, *, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    """Return status, headers and text of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=30)
    with contextlib.closing(connection):
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()


def path_of(server: serve.Server) -> str:
    return urlsplit(server.url).path


def test_only_who_has_the_token_is_answered(server: serve.Server) -> None:
    path = path_of(server)
    assert ask(server, path)[0] == ask(server, path + "data")[0] == 200
    wrong = "A" if path[5] != "A" else "B"
    for other in ("/", "/data", path[:-2] + "/", path[:5] + wrong + path[6:], path[1:-1].upper(), "//", "/é/", "/../",
                  path.replace("/", "/x", 1), "/" + "x" * 20_000):  # fmt: skip
        with contextlib.suppress(UnicodeEncodeError):
            status, headers, text = ask(server, other)
            assert status in (400, 403, 414), other
            assert path.strip("/") not in text + str(headers)
    assert ask(server, path + "other")[0] == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "127.0.0.2", "",
                                  "localhost:x", "localhost@evil.example", "[::1]"])  # fmt: skip
def test_other_names_of_the_loopback_are_refused(server: serve.Server, host: str) -> None:
    """A page of the Web whose name points to the loopback cannot read the answer, even with the token."""
    assert ask(server, path_of(server), Host=host)[0] == 403
    assert ask(server, path_of(server) + "data", Host=host)[0] == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:8080", "127.0.0.1:1"])
def test_the_other_end_of_a_tunnel_is_answered(server: serve.Server, host: str) -> None:
    assert ask(server, path_of(server), Host=host)[0] == 200


def test_two_hosts_are_none(server: serve.Server) -> None:
    request = f"GET {path_of(server)} HTTP/1.0\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"
    with socket.create_connection(server.server_address) as connection:  # type: ignore[arg-type]
        connection.sendall(request.encode())
        assert b" 403 " in connection.recv(1000)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_nothing_can_be_changed(server: serve.Server, method: str) -> None:
    assert ask(server, path_of(server), method=method)[0] == 501


def test_what_the_browser_may_do(server: serve.Server) -> None:
    status, headers, page = ask(server, path_of(server))
    assert status == 200
    policy = dict(each.strip().partition(" ")[::2] for each in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert re.fullmatch(r"'sha256-[\w+/=]+'", policy["script-src"])
    assert headers["Cache-Control"] == "no-store" and headers["Referrer-Policy"] == "no-referrer"
    assert not {name.lower() for name in headers} & {"access-control-allow-origin", "set-cookie"}
    assert path_of(server).strip("/") not in page
    assert ask(server, path_of(server), method="HEAD")[1]["Content-Length"] == str(len(page.encode()))


def test_the_page_says_everything_without_its_script(server: serve.Server) -> None:
    _, _, text = ask(server, path_of(server))
    parsed = Page(text)
    assert not [problem for problem in parsed.problems if "fetch" not in problem]
    assert "<script>alert" not in text
    assert any("/scratch/file.1" in row for _, rows in parsed.tables for row in rows)


def test_the_data(server: serve.Server) -> None:
    for _ in range(3):
        time.sleep(0.002)  # within a millisecond of the last look nothing is measured
        server.model.look()
    _, headers, text = ask(server, path_of(server) + "data")
    found = json.loads(text)
    assert headers["Content-Type"].startswith("application/json")
    assert len(found["history"]) == 3, "the first look cannot tell how fast anything is"
    assert found["json"]["jobs"][0]["written_bytes"] == 6 + 2 * 4000
    assert [len(row) for table in found["tables"] for row in table["rows"]] == [
        len(table["columns"]) for table in found["tables"] for _ in table["rows"]
    ]


def test_many_connections_are_hung_up_on(server: serve.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has no token can hold some connections for some time, and no more; then others are answered."""
    monkeypatch.setattr(serve, "_PATIENCE_S", 0.2)
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(server.server_address))  # type: ignore[arg-type]
                for _ in range(100)]  # fmt: skip
        for connection in idle:
            connection.settimeout(60)
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""
        assert ask(server, path_of(server))[0] == 200


def test_it_listens_on_the_loopback_alone(server: serve.Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert len(path_of(server).strip("/")) >= 43  # 256 bits


def test_what_was_seen_last_is_not_shown_for_ever(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the jobs cannot be looked at any more the server ends, and says why."""
    class Failing(snapshot.Watch):
        looks = 0

        def look(self) -> snapshot.Snapshot:
            self.looks += 1
            if self.looks > 2:
                raise OSError(24, "Too many open files", "/proc")
            return super().look()

    monkeypatch.setattr(serve, "Watch", Failing)
    with pytest.raises(serve.ServeError, match=r"jobs cannot be looked at any more: .*Too many open files: '/proc'"):
        serve.serve(None, 0.05, 0)
    assert "http://127.0.0.1:" in capsys.readouterr().out


def test_each_job_has_a_page_of_its_own() -> None:
    """The list links to them; one that has ended is there still, and asks no more."""
    with holding(1, 1, command="one.py") as one, holding(1, 1, command="other.py") as other:
        server = serve.Server(serve.Model(snapshot.Follower(snapshot.Watch(), "o*.py"), 1.0), 0)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            path = path_of(server)
            _, _, text = ask(server, path)
            assert {f"{one.pid}/", f"{other.pid}/"} <= set(re.findall(r'<a href="([^"]+)">', text))
            found = json.loads(ask(server, f"{path}data")[2])
            assert found["tables"][0]["links"] == [f"{job['job']}/" for job in found["json"]["jobs"]]
            for _ in range(8):
                server.model.look()
            _, _, text = ask(server, f"{path}{one.pid}/")
            assert "one.py, 1 rank on" in text and "other.py" not in text and '<a href="../">All jobs</a>' in text
            one.kill()
            one.wait(10)
            for _ in range(2):
                server.model.look()
            found = json.loads(ask(server, f"{path}{one.pid}/data")[2])
            assert found["ended"] and [job["command"] for job in found["json"]["jobs"]] == ["one.py"]
            assert json.loads(ask(server, f"{path}data")[2])["ended"] == ""
            for wrong in ("999999999/", "999999999/data", f"{one.pid}", f"{one.pid}/x", f"{one.pid}/../"):
                assert ask(server, path + wrong)[0] == 404, wrong
        finally:
            server.shutdown()
            server.server_close()


def test_it_ends_with_the_job(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A browser gets the last numbers and when the job ended, then the server ends; without one it ends, too."""
    monkeypatch.setattr(serve, "_FAREWELL_S", 0.0)
    with holding(2, 1) as job:
        one = serve.Server(serve.Model(snapshot.Follower(snapshot.Watch(), str(job.pid)), 0.05), 0)
        threads = [threading.Thread(target=run, args=arguments, daemon=True)
                   for run, arguments in ((one.serve_forever, (0.01,)), (one.model.keep_looking, (one.shutdown,)))]
        with one:
            for thread in threads:
                thread.start()
            assert json.loads(ask(one, path_of(one) + "data")[2])["ended"] == ""
            job.kill()
            while not (found := json.loads(ask(one, path_of(one) + "data")[2]))["ended"]:
                pass
            for thread in threads:
                thread.join(60)
                assert not thread.is_alive()
    assert re.fullmatch(r"\d\d:\d\d:\d\d", found["ended"])
    assert found["json"]["jobs"][0]["written_bytes"] == 2 * 4006
    monkeypatch.setattr(serve, "_AT_MOST_S", 0.0)
    with holding(1, 1) as job:
        threading.Timer(1.0, job.kill).start()
        serve.serve(str(job.pid), 0.05, 0)
    assert re.search(r"^The job ended at \d\d:\d\d:\d\d\.$", capsys.readouterr().out, re.M)


def test_ctrl_c_ends_it() -> None:
    """The address and the tunnel are printed at once; a second server cannot take the port."""
    words = ["env", "--default-signal=INT", sys.executable, "-m", "mpiio_ext", "top", "--serve"]
    with contextlib.ExitStack() as stack:
        words = [*words, str(stack.enter_context(holding(1, 1)).pid)]
        process = stack.enter_context(
            subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
        stack.callback(process.kill)
        assert process.stdout is not None and process.stderr is not None
        url, tunnel = (process.stdout.readline().strip() for _ in range(2))
        port = urlsplit(url).port
        assert tunnel == f"From another machine, first: ssh -L {port}:127.0.0.1:{port} {os.uname().nodename}"
        second = subprocess.run([*words, "--port", str(port)], capture_output=True, text=True, timeout=60)
        assert (second.returncode, second.stdout) == (2, "")
        assert f"port {port} of 127.0.0.1" in second.stderr and "Traceback" not in second.stderr
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stderr.read() == ""
