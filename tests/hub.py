"""A Hugging Face hub on this machine: as much of its protocol as huggingface_hub and datasets need to read from it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

Files = dict[str, bytes]

_FILE = re.compile(r"/(?P<type>datasets/)?(?P<name>.+?)/resolve/(?P<revision>[^/]+)/(?P<file>.+)")
_LIST = re.compile(
    r"/api/(models/|(?P<type>datasets/))(?P<name>.+?)"
    r"(/(?P<kind>revision|tree|paths-info)/(?P<revision>[^/]+)(/(?P<folder>.+))?)?"
)
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


def files_in(folder: Path) -> Files:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


@dataclass
class Repo:
    """A model or a dataset: its commits, the first of which is `main`, who may read it, and what goes wrong with it."""

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
    """Models and datasets by id, and what was asked of them: `METHOD [datasets/]name [file]`."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self.repos: dict[str, Repo] = {}
        self.datasets: dict[str, Repo] = {}
        self.asked: list[str] = []
        self.portal = False
        """Whether everything is answered with a page of somebody else's."""

    def files_asked(self, name: str) -> set[str]:
        return {words[2] for words in map(str.split, self.asked) if words[1] == name and len(words) == 3}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def do_GET(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers.get("content-length", 0))).decode())
        url = urlsplit(self.path)
        found = _LIST.fullmatch(url.path) or _FILE.fullmatch(url.path)
        if self.hub.portal or found is None:
            return self.reply(200 if self.hub.portal else 404, b"<html>Welcome</html>")
        asked = {key: unquote(value or "") for key, value in found.groupdict().items()}
        prefix, name, file = asked["type"], asked["name"], asked.get("file", "")
        self.hub.asked.append(f"{self.command} {prefix}{name} {file}".rstrip())
        repo = (self.hub.datasets if prefix else self.hub.repos).get(name)
        sent = self.headers.get("authorization")
        if repo is not None and repo.status != 200:
            return self.reply(repo.status)
        if sent not in (None, "Bearer xyz"):
            return self.reply(401, **{"X-Error-Message": "Invalid credentials in Authorization header"})
        if repo is None or (repo.token and sent != f"Bearer {repo.token}"):
            return self.refuse(404 if sent else 401, "RepoNotFound")
        if repo.gated and file:
            return self.refuse(403 if sent else 401, "GatedRepo")
        at = repo.find(asked["revision"] or "main")
        if at is None:
            return self.refuse(404, "RevisionNotFound")
        commit, files = at
        if file in files:
            return self.content(repo, commit, file, files[file])
        tree, folder = _tree(files), asked.get("folder", "")
        if file or (folder and (folder not in tree or folder in files)):
            return self.refuse(404, "EntryNotFound", commit)
        if asked["kind"] in ("", "revision"):
            return self.json({"id": name, "sha": commit, "siblings": [{"rfilename": f} for f in files]})
        if asked["kind"] == "paths-info":
            return self.json([tree[path] for path in form["paths"] if path in tree])
        depth = None if parse_qs(url.query).get("recursive") == ["true"] else 1
        self.json([tree[path] for path in tree if PurePosixPath(folder) in PurePosixPath(path).parents[:depth]])

    do_HEAD = do_POST = do_GET  # noqa: N815

    def content(self, repo: Repo, commit: str, file: str, whole: bytes) -> None:
        """One file, or what was asked for of it, unless something goes wrong."""
        status, part = 200, whole
        header = {"ETag": f'"{sha256(whole).hexdigest()}"', "X-Repo-Commit": commit}
        if wanted := _RANGE.fullmatch(self.headers.get("range", "")):
            start, stop = int(wanted[1]), min(int(wanted[2] or len(whole)) + 1, len(whole))
            if start >= len(whole):
                return self.reply(416, **{"Content-Range": f"bytes */{len(whole)}"})
            status, part = 206, whole[start:stop]
            header["Content-Range"] = f"bytes {start}-{stop - 1}/{len(whole)}"
        header["Content-Length"] = str(len(part))
        if self.command == "GET" and file.endswith(".safetensors") and (repo.short or repo.cuts > 0):
            part = part[: len(part) // 2]
            if repo.short:
                header["Content-Length"] = str(len(part))
            else:
                repo.cuts, self.close_connection = repo.cuts - 1, True
        self.reply(status, part, **header)

    def json(self, value: Any) -> None:
        self.reply(200, json.dumps(value).encode(), **{"Content-Type": "application/json"})

    def refuse(self, status: int, code: str, commit: str | None = None) -> None:
        self.reply(status, **{"X-Error-Code": code}, **({"X-Repo-Commit": commit} if commit else {}))

    def reply(self, status: int, body: bytes = b"", **header: str) -> None:
        self.send_response(status)
        for key, value in ({"Content-Length": str(len(body))} | header).items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the test reads `Hub.asked`."""


def _tree(files: Files) -> dict[str, dict[str, Any]]:
    """What the hub says of each folder and each file, by path."""
    folders = {str(folder) for file in files for folder in PurePosixPath(file).parents} - {"."}
    return {
        **{f: {"type": "directory", "path": f, "oid": sha1(f.encode()).hexdigest()} for f in sorted(folders)},
        **{f: {"type": "file", "path": f, **_git(content)} for f, content in files.items()},
    }


def _git(content: bytes) -> dict[str, Any]:
    return {"size": len(content), "oid": sha1(b"blob %d\0" % len(content) + content).hexdigest()}


@contextmanager
def serve() -> Iterator[Hub]:
    """A hub without repositories, in its own thread."""

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


def environment(home: Path, endpoint: str, **more: str) -> dict[str, str]:
    """This process's variables, without what it says about hubs and proxies."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING")) and "PROXY" not in k.upper()}
    kept.pop("TRANSFORMERS_OFFLINE", None)
    return kept | {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1"} | more


@contextmanager
def pointing_at(hub: Hub, home: Path, offline: bool = False) -> Iterator[None]:
    """This process, and those it starts, know no other hub, keep what they fetch in `home` and retry at once."""
    from huggingface_hub import close_session
    from huggingface_hub.utils import http_backoff, http_stream_backoff

    template = hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    values = {
        "huggingface_hub.constants.ENDPOINT": hub.endpoint,
        "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE": template,
        "huggingface_hub.constants.HF_HUB_CACHE": str(home / "hub"),
        "huggingface_hub.constants.HF_TOKEN_PATH": str(home / "token"),
        "huggingface_hub.constants.HF_HUB_OFFLINE": offline,
        "huggingface_hub.hf_api.api.endpoint": hub.endpoint,
        "huggingface_hub.HfFileSystem._cache": {},
        "datasets.config.HF_ENDPOINT": hub.endpoint,
        "datasets.config.HF_DATASETS_CACHE": home / "datasets",
        "datasets.config.DOWNLOADED_DATASETS_PATH": home / "datasets" / "downloads",
        "datasets.config.HF_HUB_OFFLINE": offline,
        "datasets.config.HF_UPDATE_DOWNLOAD_COUNTS": False,
        "datasets.config.USE_PARQUET_EXPORT": False,
    }
    variables = environment(home, hub.endpoint, HF_HUB_OFFLINE=str(int(offline)), HF_UPDATE_DOWNLOAD_COUNTS="0")
    with pytest.MonkeyPatch.context() as patch:
        for target, value in values.items():  # before the variables, which datasets reads once, when it is imported
            patch.setattr(target, value)
        for key in os.environ.keys() - variables.keys():
            patch.delenv(key)
        for key, variable in variables.items() - os.environ.items():
            patch.setenv(key, variable)
        for function in (http_backoff, http_stream_backoff.__wrapped__):
            patch.setitem(function.__kwdefaults__, "base_wait_time", 0.01)
        close_session()  # one that knew of proxies
        try:
            yield
        finally:
            close_session()
