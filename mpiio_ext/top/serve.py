"""``mpiio-ext top --serve``: the tables in a browser, for this user alone.

Problem. Every user of the machine can connect to a port of its loopback; a page of the Web that the user has open can
send requests there, too, under a name that it lets point to the loopback.

Algorithm. The first part of every path is a token of 256 random bits. It is in the address that is printed, and nowhere
else: no cookie, which a browser would send to other ports of the same host, and no link leads away from the page. A
request needs the token and a Host that is this machine's loopback; nothing is answered to others but 403. One thread
looks at the jobs; requests get what it saw last.

It ends after the job that was asked for: a browser gets the last numbers first, if one asks within `_AT_MOST_S`.

Guarantees. The server listens on 127.0.0.1 alone, over which the SSH tunnel comes that is printed. Tokens are compared
in constant time. Nothing can be changed through it: only GET and HEAD are known. The page fetches from its own
server only, which its Content-Security-Policy says to the browser. Of others at most `_MOST` connections are held, each
for `_PATIENCE_S` at most.
"""

from __future__ import annotations

import base64
import collections
import contextlib
import hashlib
import hmac
import http.server
import importlib
import json
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mpiio_ext.common.extras import needing
from mpiio_ext.common.page import fill
from mpiio_ext.common.plots.theme import THEMES, look
from mpiio_ext.common.printing import echo
from mpiio_ext.errors import MpiioExtError
from mpiio_ext.top.jobs import Rates
from mpiio_ext.top.snapshot import Follower, Snapshot, Watch, Watched, as_json
from mpiio_ext.top.tables import Table, clock, job_list, notes, tables

_ADDRESS = "127.0.0.1"
_NAMES = frozenset({_ADDRESS, "localhost"})
_FOLDER = Path(__file__).parent
_PATIENCE_S = 10.0
_MOST = 32
#: Bandwidth of so much time is drawn.
HISTORY_S = 300.0
#: So long the last numbers of a job that has ended are served: after an answer with them, and at most without one.
_FAREWELL_S, _AT_MOST_S = 5.0, 90.0
#: Of all jobs that are followed; jobs that have ended and still have a page.
_ALL, _MOST_ENDED = "", 20
#: Numbers of the looks of reads and writes, in the page of a run, too.
_LOOKS = {"read": 4, "written": 1}
#: Rows of a table that a page shows.
_MOST_ROWS = 500
_SCRIPT = re.compile(r"<script>(.*?)</script>", re.S)


class ServeError(MpiioExtError, OSError):
    """The page cannot be served; the message says why."""


class Model:
    """What the pages show now, of all jobs that are followed and of each, and the bandwidth of the last minutes."""

    def __init__(self, follower: Follower, interval_s: float) -> None:
        self._follower, self._interval_s = follower, interval_s
        self._histories: dict[str, collections.deque[tuple[float, float, float]]] = {}
        self._seen: dict[str, Snapshot] = {}
        self._made: dict[str, dict[str, Any]] = {}
        self.over = False
        self._told = threading.Event()
        self.failure: Exception | None = None
        self.look()

    def look(self) -> None:
        """Look once."""
        seen = self._follower.look()
        groups: dict[str, list[Watched]] = {}
        for watched in seen.jobs:
            groups.setdefault(watched.job.name, []).append(watched)
        found = {name: replace(seen, jobs=tuple(each)) for name, each in groups.items()}
        ended = [name for name in self._seen if name not in found and name != _ALL]
        found = {**{name: self._seen[name] for name in ended[-_MOST_ENDED:]}, **found, _ALL: seen}
        self._histories = {name: self._histories.get(name) or collections.deque(
            maxlen=max(2, int(HISTORY_S / self._interval_s))) for name in found}  # fmt: skip
        for name in (_ALL, *groups):
            self._note(self._histories[name], found[name])
        self._seen, self._made = found, {}
        self.over = self._follower.is_over(seen)

    @staticmethod
    def _note(history: collections.deque[tuple[float, float, float]], seen: Snapshot) -> None:
        """Note how fast jobs move; what one look cannot tell is not noted as nothing."""
        moved = sum((watched.job.rates for watched in seen.jobs), Rates())
        if moved.interval_s or seen.ended_unix_s is not None or not seen.jobs:
            history.append((seen.sampled_unix_s, moved.written_bytes_per_s, moved.read_bytes_per_s))

    def keep_looking(self, end: Callable[[], None]) -> None:
        """Look until the job has ended and a browser knows it, or looking fails; then call `end`.

        Nobody is shown what was seen last as if it were now.
        """
        try:
            while not self.over:
                time.sleep(self._interval_s)
                self.look()
            if self._told.wait(_AT_MOST_S):
                time.sleep(_FAREWELL_S)
        except Exception as error:  # of a thread, which nobody waits for
            self.failure = error
        finally:
            end()

    def content(self, name: str = "") -> dict[str, Any] | None:
        """Return what a page shows, for its script.

        Parameters
        ----------
        name : of a job; "": all that are followed. None is returned where no job was called so lately.
        """
        over, seen, made = self.over, self._seen.get(name), self._made
        if seen is None:
            return None
        if name not in made:
            ended = seen.ended_unix_s if over or name != _ALL else None
            made[name] = {**_shown(seen, name or self._follower.name, links=name == _ALL),
                          "interval_s": self._interval_s, "ended": "" if ended is None else clock(ended),
                          "all": name != _ALL, "history_s": HISTORY_S,
                          "history": [list(each) for each in self._histories[name]]}  # fmt: skip
        if over:
            self._told.set()
        return made[name]


def _plain(table: Table, links: Sequence[str] = ()) -> dict[str, Any]:
    """Return a table for the page; a link belongs to the first cell of its row."""
    styles = ["n" if at >= table.texts else "w" if name == table.long else "" for at, name in enumerate(table.columns)]
    hidden = len(table.rows) - _MOST_ROWS
    return {"title": table.title, "columns": table.columns, "styles": styles, "rows": table.rows[:_MOST_ROWS],
            "links": list(links or [""] * len(table.rows)), "note": f"… {hidden} more" if hidden > 0 else ""}


def _shown(seen: Snapshot, name: str | None, *, links: bool) -> dict[str, Any]:
    single = seen.jobs[0] if len(seen.jobs) == 1 else None
    if single is not None:
        parts = [_plain(part) for part in tables(seen, single)]
    else:
        found = [f"{watched.job.name}/" for watched in seen.jobs] if links else []
        parts = [_plain(job_list(seen), found)] if seen.jobs else []
    return {"title": f"mpiio-ext top: {name or 'jobs'} on {seen.host}", "sampled_unix_s": seen.sampled_unix_s,
            "tables": parts, "notes": list(notes(seen, single)), "json": as_json(seen)}


def _policy(page: str) -> str:
    """Return what the browser may load for the page: its own script, its style, data of its own server."""
    scripts = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(each.encode()).digest()).decode()}'"
                       for each in _SCRIPT.findall(page))  # fmt: skip
    return (f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; connect-src 'self'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


def _page(content: Mapping[str, Any]) -> str:
    colours = {f"{name}_{ground}": theme.colour(look(number).colour)
               for name, number in _LOOKS.items() for ground, theme in THEMES.items()}  # fmt: skip
    return fill(_FOLDER / "page.html", {**content, **colours},
                script=(_FOLDER / "script.js").read_text(encoding="utf-8"))  # fmt: skip


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers one request: ``/TOKEN/`` is the page, ``/TOKEN/data`` what it shows, ``/TOKEN/JOB/`` that of a job."""

    server: Server
    server_version = "mpiio-ext"
    sys_version = ""
    timeout = _PATIENCE_S

    def do_GET(self) -> None:
        """Answer."""
        path = urlsplit(self.path).path
        token, _, rest = path.removeprefix("/").partition("/")
        if not self._is_meant() or not hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token):
            self._send(HTTPStatus.FORBIDDEN, "text/plain", "403: the address that mpiio-ext top printed is needed\n")
        else:
            job, _, what = rest.rpartition("/")
            content = self.server.model.content(job) if what in ("", "data") else None
            if content is None:
                self._send(HTTPStatus.NOT_FOUND, "text/plain", "404\n")
            elif what == "data":
                self._send(HTTPStatus.OK, "application/json", json.dumps(content))
            else:
                page = _page(content)
                self._send(HTTPStatus.OK, "text/html", page, _policy(page))

    do_HEAD = do_GET  # noqa: N815 - the name that the base class looks for

    def _is_meant(self) -> bool:
        """Return whether the request was sent to the loopback by its own name; other names may point there."""
        hosts = self.headers.get_all("Host") or []
        name, _, port = hosts[0].partition(":") if len(hosts) == 1 else ("", "", "")
        return name.lower() in _NAMES and (port == "" or port.isdigit())

    def _send(self, status: HTTPStatus, kind: str, text: str, policy: str = "default-src 'none'") -> None:
        body = text.encode("utf-8", "replace")
        self.send_response(status)
        for name, value in {
            "Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body)), "Cache-Control": "no-store",
            "Content-Security-Policy": policy, "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin",
        }.items():  # fmt: skip
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Say nothing: the token is in every path."""


class Server(http.server.ThreadingHTTPServer):
    """Serves one model on a port of the loopback."""

    daemon_threads = True
    allow_reuse_address = False
    request_queue_size = 128  # connections of others, which wait there, keep nobody out

    def __init__(self, model: Model, port: int) -> None:
        super().__init__((_ADDRESS, port), Handler)
        self.model = model
        self._secret = secrets.token_urlsafe(32)
        self.token = self._secret.encode()
        self._room = threading.BoundedSemaphore(_MOST)

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{_ADDRESS}:{self.server_address[1]}/{self._secret}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, unless there are many already."""
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, then make room."""
        timer = threading.Timer(_PATIENCE_S, _hang_up, (request,))
        timer.daemon = True
        timer.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            timer.cancel()
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that hang up."""


def _hang_up(connection: socket.socket) -> None:
    """End a connection that takes too long, however slowly it goes on."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def serve(name: str | None, interval_s: float, port: int) -> None:
    """Serve until the user interrupts, or the job has ended.

    Parameters
    ----------
    name : of the job; None: all jobs.
    interval_s : between two looks.
    port : 0: one that is free.

    Raises
    ------
    ServeError
        The port cannot be had; the jobs cannot be looked at any more.
    MissingExtraError
        What makes pages is not installed.
    """
    with needing("analytics", "mpiio-ext top --serve"):
        importlib.import_module("jinja2")  # now, and not when the first browser asks
    model = Model(Follower(Watch(), name), interval_s)
    try:
        server = Server(model, port)
    except OSError as error:
        raise ServeError(f"port {port} of {_ADDRESS}: {os.strerror(error.errno or 0)}; --port 0 takes a free one"
                         ) from error  # fmt: skip
    threading.Thread(target=model.keep_looking, args=(server.shutdown,), daemon=True).start()
    number, host = server.server_address[1], os.uname().nodename
    echo(server.url)
    echo(f"From another machine, first: ssh -L {number}:{_ADDRESS}:{number} {host}")
    ends = "Ctrl-C ends it" if name is None else "Ctrl-C ends it, and the end of the job"
    echo(f"Who has the address sees what it shows. {ends}.")
    with contextlib.suppress(KeyboardInterrupt), server:
        server.serve_forever()
    content = model.content()
    if model.over and content is not None:
        echo(f"The job ended at {content['ended']}.")
    if model.failure is not None:
        raise ServeError(f"jobs cannot be looked at any more: {model.failure}") from model.failure
