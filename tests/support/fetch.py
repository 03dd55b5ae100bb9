"""Fetch a source distribution of an installed package from the package index, without building anything.

``pip download`` runs the package's build to learn its metadata; this asks the index itself (either form of the simple
API), takes the one file, checks its hash and keeps it under the user's cache folder.
"""

from __future__ import annotations

import hashlib
import html.parser
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import urllib.parse
import urllib.request


class FetchError(RuntimeError):
    """The file could not be fetched; the message says why (offline, not on the index, wrong hash)."""


def cache_folder() -> pathlib.Path:
    """Return the folder where test material is kept between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "mpiio_ext"


def index_url() -> str:
    """Return the package index that pip is set up for."""
    if "PIP_INDEX_URL" in os.environ:
        return os.environ["PIP_INDEX_URL"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "https://pypi.org/simple"


class _Anchors(html.parser.HTMLParser):
    """Collects the links of an index page in its older, HTML form."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the target of an anchor."""
        self.links += [value for name, value in attrs if tag == "a" and name == "href" and value]


def index_files(page: str) -> dict[str, tuple[str, str]]:
    """Return file name -> (address, sha256 or "") of everything on an index page, in either form of the API."""
    accept = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"
    request = urllib.request.Request(page, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=60) as answer:
        content = answer.read()
        as_json = "json" in answer.headers.get("Content-Type", "")
    if as_json:
        return {
            f["filename"]: (urllib.parse.urljoin(page, f["url"]), f["hashes"].get("sha256", ""))
            for f in json.loads(content)["files"]
        }
    anchors = _Anchors()
    anchors.feed(content.decode(errors="replace"))
    found = {}
    for link in anchors.links:
        address, fragment = urllib.parse.urldefrag(urllib.parse.urljoin(page, link))
        found[urllib.parse.unquote(address.rsplit("/", 1)[-1])] = (address, fragment.removeprefix("sha256="))
    return found


def sdist(package: str, version: str) -> pathlib.Path:
    """Return the unpacked source distribution of ``package`` ``version``, fetched once and then cached."""
    folder = cache_folder() / f"{package}-{version}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    archive = folder.parent / f"{package}-{version}.tar.gz"
    page = f"{index_url().rstrip('/')}/{package}/"
    try:
        address, digest = index_files(page).get(archive.name, ("", ""))
        if not address:
            raise FetchError(f"{page} has no {archive.name}")
        with urllib.request.urlopen(address, timeout=120) as answer:
            content = answer.read()
    except (OSError, ValueError, KeyError) as error:
        raise FetchError(f"cannot fetch {archive.name} from the package index: {error}") from error
    if digest and hashlib.sha256(content).hexdigest() != digest:
        raise FetchError(f"{archive.name} does not have the hash that the index states")
    archive.write_bytes(content)
    unpacked = folder.with_name(folder.name + f".{os.getpid()}")
    with tarfile.open(archive) as tar:
        tar.extractall(unpacked, filter="data")
    try:
        (unpacked / folder.name).rename(folder)
    except OSError as error:  # another process was faster
        if not folder.is_dir():
            raise FetchError(str(error)) from error
    return folder
