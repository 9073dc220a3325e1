"""What package indexes list of a distribution (PEP 503 and 691), asked with pip's settings: one request an index.

Only an answer counts. An index that says that it does not have the name has answered; one that cannot be reached, or
that fails, ends in an error, since nothing is known of what it has.
"""

from __future__ import annotations

import ast
import base64
import json
import netrc
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit, urlunsplit

from .errors import ToolError
from .project import file_sha256, pip_environment

_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"
_SECONDS = 30
# What passes by itself is tried again, after so many seconds.
_PAUSES = (0.5, 1.5)
_PASSING = (408, 429, 500, 502, 503, 504)
_ABSENT = (404, 410)


@dataclass(frozen=True)
class File:
    """A file of a distribution as an index lists it."""

    name: str
    sha256: str
    """'' where the index gives none."""
    requires_python: str = ""
    yanked: bool = False


@dataclass(frozen=True)
class Sources:
    """Where pip looks for distributions."""

    indexes: tuple[str, ...]
    links: tuple[str, ...]
    """Folders and pages that list files (`find-links`)."""
    certificate: str = ""
    proxy: str = ""
    trusted: tuple[str, ...] = ()
    """Hosts whose certificate is not looked at."""


@cache
def pip_sources() -> Sources:
    """pip's settings, of its files and the environment."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    done = subprocess.run(
        command, env=pip_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ToolError(f"pip cannot read its settings: {(done.stderr.strip().splitlines() or ['no word'])[-1]}")
    settings: dict[str, str] = {}
    for section in ("global", "download", ":env:"):
        for key, value in re.findall(rf"^{section}\.([\w-]+)=(.*)$", done.stdout, re.MULTILINE):
            settings[key] = str(ast.literal_eval(value))

    def words(key: str) -> tuple[str, ...]:
        return tuple(settings.get(key, "").split())

    alone = settings.get("no-index", "").lower() in ("1", "true", "yes", "on")
    indexes = (settings.get("index-url", "https://pypi.org/simple"), *words("extra-index-url"))
    certificate, proxy = settings.get("cert", ""), settings.get("proxy", "")
    return Sources(() if alone else indexes, words("find-links"), certificate, proxy, words("trusted-host"))


def files_of(name: str, sources: Sources) -> list[File]:
    """Every file that the sources list of a distribution; a ToolError names a source that gives no answer."""
    found: dict[str, File] = {}
    normal = re.sub(r"[-_.]+", "-", name).lower()
    for index in sources.indexes:
        for file in _listed(f"{index.rstrip('/')}/{normal}/", sources, root=index):
            found.setdefault(file.name, file)
    for place in sources.links:
        for file in _listed(place, sources, root=place):
            found.setdefault(file.name, file)
    return list(found.values())


def _listed(place: str, sources: Sources, root: str) -> list[File]:
    if urlsplit(place).scheme in ("http", "https"):
        kind, text = _get(place, sources)
        return _read(kind, text)
    path, top = (Path(unquote(urlsplit(one).path if one.startswith("file:") else one)) for one in (place, root))
    if not top.exists():
        raise ToolError(f"the registry cannot be reached: there is no {top}, which pip's settings name")
    if path.is_file() or (path / "index.html").is_file():
        return _read("text/html", (path if path.is_file() else path / "index.html").read_text())
    if not path.is_dir():
        return []
    return [File(file.name, file_sha256(file)) for file in sorted(path.glob("*.whl"))]


def _get(url: str, sources: Sources) -> tuple[str, str]:
    """(content type, text) of a page, ('', '') if there is none."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    shown = urlunsplit((*parts[:1], parts.netloc.rpartition("@")[2], *parts[2:]))
    headers = {"Accept": _ACCEPT, "Cache-Control": "max-age=0"}
    if login := _login(parts.username, parts.password, host):
        headers["Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
    opener = urllib.request.build_opener(*_handlers(sources, {host, f"{host}:{parts.port}"}))
    for pause in (*_PAUSES, None):
        try:
            with opener.open(urllib.request.Request(shown, headers=headers), timeout=_SECONDS) as answer:
                return answer.headers.get("Content-Type", ""), answer.read().decode()
        except urllib.error.HTTPError as error:
            if error.code in _ABSENT:
                return "", ""
            why, passes = f"it answers {error.code} {error.reason}", error.code in _PASSING
        except (OSError, ValueError) as error:  # no answer, half an answer, or one that is no text
            why, passes = str(getattr(error, "reason", error)) or repr(error), isinstance(error, OSError)
        if pause is None or not passes:
            break
        time.sleep(pause)
    raise ToolError(f"the registry cannot be reached: {shown}: {why}")


def _handlers(sources: Sources, names: set[str]) -> list[urllib.request.BaseHandler]:
    import ssl

    context = ssl.create_default_context(cafile=sources.certificate or None)
    if names & set(sources.trusted):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    handlers: list[urllib.request.BaseHandler] = [urllib.request.HTTPSHandler(context=context)]
    if sources.proxy:
        handlers.append(urllib.request.ProxyHandler(dict.fromkeys(("http", "https"), sources.proxy)))
    return handlers


def _login(user: str | None, password: str | None, host: str) -> str:
    """`user:password` of a URL, or of ~/.netrc; '' without one."""
    if user:
        return f"{unquote(user)}:{unquote(password or '')}"
    try:
        known = netrc.netrc().authenticators(host)
    except (OSError, netrc.NetrcParseError):
        known = None
    return f"{known[0]}:{known[2]}" if known else ""


def _read(kind: str, text: str) -> list[File]:
    """The files that a page lists."""
    if "json" in kind:
        try:
            return [_of_json(entry) for entry in json.loads(text)["files"]]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ToolError(f"the registry's answer cannot be read: {error!r}") from None
    page = _Page()
    page.feed(text)
    return page.files


def _of_json(entry: dict[str, object]) -> File:
    hashes = entry["hashes"]
    assert isinstance(hashes, dict)
    digest, python = str(hashes.get("sha256", "")), str(entry.get("requires-python") or "")
    return File(str(entry["filename"]), digest, python, bool(entry.get("yanked")))


class _Page(HTMLParser):
    """The anchors of a page (PEP 503)."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[File] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag != "a" or not values.get("href"):
            return
        url, fragment = urldefrag(values["href"] or "")
        digest = fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else ""
        name = unquote(urlsplit(url).path.rsplit("/", 1)[-1])
        self.files.append(File(name, digest, values.get("data-requires-python") or "", "data-yanked" in values))
