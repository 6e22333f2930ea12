"""A Hugging Face hub on this machine: as much of its protocol as huggingface_hub needs to download a model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit

Files = dict[str, bytes]

_FILE = re.compile(r"/(?P<name>.+)/(?P<kind>resolve)/(?P<revision>[^/]+)/(?P<file>.+)")
_LIST = re.compile(r"/api/models/(?P<name>.+)/(?P<kind>revision|tree)/(?P<revision>[^/]+)")


def files_in(folder: Path) -> Files:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


@dataclass
class Repo:
    """A model: its commits, the first of which is `main`, who may read it, and what goes wrong with it."""

    commits: list[Files]
    tags: dict[str, int] = field(default_factory=dict)
    token: str | None = None
    gated: bool = False
    status: int = 200
    """What every request is answered with: at 200 what was asked for, else nothing."""
    short: bool = False
    """Weights arrive in half, as if that were all."""
    cuts: int = 0
    """So many requests for weights are cut off in the middle."""

    @property
    def hashes(self) -> list[str]:
        return [sha1(json.dumps(sorted(f)).encode() + b"".join(f.values())).hexdigest() for f in self.commits]

    def find(self, revision: str) -> tuple[str, Files] | None:
        number = {"main": 0, **self.tags, **{h: n for n, h in enumerate(self.hashes)}}.get(revision)
        return None if number is None else (self.hashes[number], self.commits[number])


class Hub:
    """Repositories by id, and what was asked of them: `METHOD name file` or `METHOD name`."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self.repos: dict[str, Repo] = {}
        self.asked: list[str] = []
        self.portal = False
        """Whether everything is answered with a page of somebody else's."""

    def files_asked(self, name: str) -> set[str]:
        return {words[2] for words in map(str.split, self.asked) if words[1] == name and len(words) == 3}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        found = _LIST.fullmatch(path) or _FILE.fullmatch(path)
        if self.hub.portal or found is None:
            return self.reply(200 if self.hub.portal else 404, b"<html>Welcome</html>")
        asked = {key: unquote(value) for key, value in found.groupdict().items()}
        name, file, repo = asked["name"], asked.get("file"), self.hub.repos.get(asked["name"])
        self.hub.asked.append(" ".join([self.command, name, *([file] if file else [])]))
        sent = self.headers.get("authorization")
        if repo is not None and repo.status != 200:
            return self.reply(repo.status)
        if sent not in (None, "Bearer xyz"):
            return self.reply(401, **{"X-Error-Message": "Invalid credentials in Authorization header"})
        if repo is None or (repo.token and sent != f"Bearer {repo.token}"):
            return self.refuse(404 if sent else 401, "RepoNotFound")
        if repo.gated and file:
            return self.refuse(403 if sent else 401, "GatedRepo")
        at = repo.find(asked["revision"])
        if at is None:
            return self.refuse(404, "RevisionNotFound")
        commit, files = at
        if asked["kind"] == "revision":
            return self.json({"id": name, "sha": commit, "siblings": [{"rfilename": f} for f in files]})
        if asked["kind"] == "tree":
            return self.json([{"type": "file", "path": f, **_git(content)} for f, content in files.items()])
        assert file is not None
        if file not in files:
            return self.refuse(404, "EntryNotFound", commit)
        self.content(repo, commit, file, files[file])

    def content(self, repo: Repo, commit: str, file: str, whole: bytes) -> None:
        """One file, whole unless something goes wrong."""
        header = {"ETag": f'"{sha256(whole).hexdigest()}"', "X-Repo-Commit": commit, "Content-Length": str(len(whole))}
        if self.command == "GET" and file.endswith(".safetensors") and (repo.short or repo.cuts > 0):
            whole = whole[: len(whole) // 2]
            if repo.short:
                header["Content-Length"] = str(len(whole))
            else:
                repo.cuts, self.close_connection = repo.cuts - 1, True
        self.reply(200, whole, **header)

    def json(self, value: Any) -> None:
        self.reply(200, json.dumps(value).encode(), **{"Content-Type": "application/json"})

    def refuse(self, status: int, code: str, commit: str | None = None) -> None:
        self.reply(status, **{"X-Error-Code": code}, **({"X-Repo-Commit": commit} if commit else {}))

    def reply(self, status: int, body: bytes = b"", **header: str) -> None:
        self.send_response(status)
        for key, value in ({"Content-Length": str(len(body))} | header).items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the test reads `Hub.asked`."""


def _git(content: bytes) -> dict[str, Any]:
    return {"size": len(content), "oid": sha1(b"blob %d\0" % len(content) + content).hexdigest()}


@contextmanager
def serve() -> Iterator[Hub]:
    """A hub without repositories, in a thread of its own."""

    class OfThis(Handler):
        pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), OfThis)
    OfThis.hub = Hub(server.server_port)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield OfThis.hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
