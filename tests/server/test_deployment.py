"""The files of `deploy/`: they agree with the server's defaults, and nginx hands streams on as they come."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.cli.running import run
from tests.server.running import SETTINGS, QuickModel, running
from uncode.server.guard import PUBLIC
from uncode.server.settings import ServerLimits

DEPLOY = Path(__file__).parents[2] / "deploy"
CONTAINER, PROXY = DEPLOY / "Containerfile", DEPLOY / "nginx.conf"
PROMPT = {"prompt": "2 + 3 =", "max_tokens": 24}


def stages() -> dict[str, list[str]]:
    """The instructions of each stage of the container file, with those of the stages it is made from."""
    found: dict[str, list[str]] = {}
    for line in re.sub(r"\\\n", " ", CONTAINER.read_text()).splitlines():
        if made := re.match(r"FROM (\S+) AS (\S+)", line):
            lines = [*found.get(made.group(1), [])]
            found[made.group(2)] = lines
        elif found and line and not line.startswith("#"):
            lines.append(re.sub(r"\s+", " ", line))
    return found


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_the_container_runs_as_a_user_and_has_no_secret(target: str) -> None:
    lines = stages()[target]
    assert [line for line in lines if line.startswith("USER")] == ["USER 10001:10001"] == lines[-1:]
    (health,) = (line for line in lines if line.startswith("HEALTHCHECK"))
    found = re.search(r"http://127.0.0.1:(\d+)(/\w+)", health)
    (entry,) = (json.loads(line.removeprefix("ENTRYPOINT ")) for line in lines if line.startswith("ENTRYPOINT"))
    assert found is not None and found.group(1) == entry[entry.index("--port") + 1]
    assert found.group(2) in PUBLIC  # the check has no key
    assert not re.search(r"(?i)(api_?key|token|password|secret)\s*=", CONTAINER.read_text())


def test_the_proxy_agrees_with_the_defaults_of_the_server() -> None:
    limits, text = ServerLimits(), PROXY.read_text()

    def value(name: str) -> int:
        found = re.search(rf"^\s*{name} (\d+)[smk]?;", text, re.M)
        assert found is not None, name
        return int(found.group(1))

    assert value("client_max_body_size") * 1024**2 == limits.body_bytes
    assert value("client_header_timeout") == value("client_body_timeout") == limits.read_seconds
    assert value("keepalive_timeout") < limits.read_seconds
    assert value("proxy_read_timeout") > limits.seconds
    assert "proxy_buffering off;" in text and "gzip off;" in text
    for error in re.findall(r"return \d+ '(.*)';", text):
        assert set(json.loads(error)["error"]) == {"message", "type", "param", "code"}


def free_ports(number: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


@contextmanager
def proxying(folder: Path, upstream: int) -> Iterator[int]:
    """nginx with the file of `deploy/`, on free ports and with its own certificate. Yields the port."""
    plain, secure = free_ports(2)
    key = ["-keyout", f"{folder}/privkey.pem", "-out", f"{folder}/fullchain.pem"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", *key]
    subprocess.run(made, check=True, capture_output=True)
    text = PROXY.read_text().replace("/etc/nginx/tls", str(folder)).replace("127.0.0.1:8000", f"127.0.0.1:{upstream}")
    text = text.replace("listen 80;", f"listen 127.0.0.1:{plain};").replace("listen 443", f"listen 127.0.0.1:{secure}")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    text = text.replace("http {", f"http {{ {paths} access_log off;", 1)
    (folder / "nginx.conf").write_text(f"daemon off; pid {folder}/pid; error_log {folder}/errors;\n{text}")
    command = ["nginx", "-p", str(folder), "-e", f"{folder}/errors", "-c", f"{folder}/nginx.conf"]
    subprocess.run([*command, "-t"], check=True, capture_output=True)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", secure)) == 0:
                    break
            time.sleep(0.05)
        yield secure
    finally:
        process.terminate()
        process.wait(20)


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("nginx") and shutil.which("openssl")), reason="nginx is not installed")
def test_streams_and_errors_through_nginx(tmp_path: Path) -> None:
    settings = replace(SETTINGS, api_key="key")
    with running(QuickModel(0.05), settings) as server, proxying(tmp_path, server.port) as port:
        address, key = f"https://127.0.0.1:{port}", {"Authorization": "Bearer key"}
        with httpx.Client(base_url=address, verify=False, timeout=60, headers=key) as client:
            assert client.get("/health", headers={"Authorization": ""}).status_code == 200
            assert client.post("/v1/completions", json=PROMPT, headers={"Authorization": ""}).status_code == 401
            assert client.get("/metrics").status_code == 200  # from this machine
            arrived = []
            body = PROMPT | {"stream": True, "sampler": "left_to_right", "stop_at_eos": False}
            with client.stream("POST", "/v1/completions", json=body) as response:
                arrived = [time.monotonic() for line in response.iter_lines() if line.startswith("data: {")]
            assert len(arrived) > 10 and arrived[-1] - arrived[0] > 0.5  # 24 forwards of 0.05 s
            large = client.post("/v1/completions", content=b"x" * (3 << 20))
            assert large.status_code == 413 and large.json()["error"]["code"] == "body_too_large"
            many = [client.get("/v1/models") for _ in range(150)]
            refused = [one for one in many if one.status_code == 429]
            assert refused and refused[0].headers["retry-after"] == "1" and "error" in refused[0].json()


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("nginx") and shutil.which("openssl")), reason="nginx is not installed")
def test_a_server_that_is_gone_is_503_behind_nginx(tmp_path: Path) -> None:
    with proxying(tmp_path, free_ports(1)[0]) as port:
        gone = httpx.post(f"https://127.0.0.1:{port}/v1/completions", json=PROMPT, verify=False)
        assert gone.status_code == 503 and gone.json()["error"]["code"] == "unavailable"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--replicas", "2"), "need --ray"),
        (("--max-replicas", "2"), "need --ray"),
        (("--ray", "--replicas", "3", "--max-replicas", "2"), "--max-replicas 2 is less than --replicas 3"),
        (("--ray", "--port", "0"), "choose a port"),
        (("--ray", "--connections", "9"), "in the proxy before it"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(words: tuple[str, ...], message: str) -> None:
    done = run("serve", *words)
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1
