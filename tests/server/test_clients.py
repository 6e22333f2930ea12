"""Clients that people use, against `uncode serve` in its own process: LiteLLM, `llm`, and a thousand idle ones."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.running import ROOT, run
from tests.server.running import STORY
from uncode.server.run import listen

ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
LITELLM = """
import json, sys, litellm
base, prompt = sys.argv[1:]
asked = dict(api_base=base, api_key="none", max_tokens=24, seed=0)
turns = [{"role": "user", "content": prompt, "name": "eve"}]
plain = litellm.completion(model="openai/tiny", messages=turns, extra_body={"top_k": -1, "min_tokens": 0}, **asked)
parts = litellm.completion(
    model="openai/tiny", messages=[{"role": "user", "content": prompt}], stream=True, extra_body={"rate": 0.5}, **asked
)
text = litellm.text_completion(model="text-completion-openai/tiny", prompt=prompt, **asked)
try:
    litellm.text_completion(model="text-completion-openai/tiny", prompt="x", extra_body={"rtae": 1}, **asked)
    error = ""
except litellm.BadRequestError as raised:
    error = str(raised)
print(json.dumps({
    "chat": plain.choices[0].message.content,
    "stream": "".join(part.choices[0].delta.content or "" for part in parts),
    "text": text.choices[0].text,
    "forwards": plain.usage.completion_tokens_details.forwards,
    "error": error,
}))
"""


LANGCHAIN = """
import json, sys
from langchain_openai import ChatOpenAI, OpenAI
base, prompt = sys.argv[1:]
asked = dict(base_url=base, api_key="none", model="tiny", max_tokens=24, temperature=0, seed=0)
chat = ChatOpenAI(**asked)
turns = [("system", "Add."), ("human", prompt)]
answer = chat.invoke([("human", prompt)])
stream = "".join(part.content for part in ChatOpenAI(stream_usage=True, **asked).stream([("human", prompt)]))
newer = ChatOpenAI(use_responses_api=True, base_url=base, api_key="none", model="tiny", max_tokens=24, temperature=0)
tool = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}
try:
    chat.bind_tools([tool]).invoke(turns)
    error = ""
except Exception as raised:
    error = str(raised)
print(json.dumps({
    "chat": answer.content,
    "tokens": answer.usage_metadata["output_tokens"],
    "stream": stream,
    "responses": newer.invoke([("human", prompt)]).text,
    "text": OpenAI(**asked).invoke(prompt),
    "error": error,
}))
"""
NPM = """
import OpenAI from "openai";
const [base, prompt] = process.argv.slice(2);
const client = new OpenAI({ baseURL: base, apiKey: "none" });
const asked = { model: "tiny", max_tokens: 24, seed: 0, temperature: 0 };
const messages = [{ role: "user", content: prompt, name: "eve" }];
const chat = await client.chat.completions.create({ messages, ...asked });
let stream = "";
for await (const part of await client.chat.completions.create({ messages, stream: true, ...asked })) {
    stream += part.choices[0]?.delta?.content ?? "";
}
const text = await client.completions.create({ prompt, best_of: 1, ...asked });
const newer = await client.responses.create({ model: "tiny", input: prompt, max_output_tokens: 24, temperature: 0 });
let error = "";
try {
    const tools = [{ type: "function", function: { name: "add" } }];
    await client.chat.completions.create({ messages, tools, ...asked });
} catch (raised) {
    error = raised.message;
}
console.log(JSON.stringify({
    chat: chat.choices[0].message.content, stream, text: text.choices[0].text, responses: newer.output_text, error,
}));
"""


@dataclass
class Served:
    process: subprocess.Popen[str]
    address: str
    log: Path


@contextmanager
def served(folder: Path, *words: str) -> Iterator[Served]:
    """`uncode serve` in its own process, until the end of the block."""
    log = folder / "log.jsonl"
    command = [sys.executable, "-m", "uncode", "serve", "--port", "0", *words]
    with (
        log.open("w") as lines,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=lines, text=True, env=ENVIRONMENT) as process,
    ):
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+:\d+", process.stdout.readline())
            assert found, log.read_text()
            yield Served(process, found[0], log)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def ask(address: str, **body: Any) -> httpx.Response:
    with httpx.Client(verify=False, timeout=120) as client:
        return client.post(f"{address}/v1/completions", json=body)


def test_the_verb_serves_until_a_signal(tmp_path: Path) -> None:
    with served(tmp_path, "--sampler", "confidence", "--rows", "4", "--name", "small") as server:
        found = ask(server.address, model="small", prompt="1 + 1 =", max_tokens=3)
        assert found.status_code == 200 and found.json()["sampler"] == "confidence"
        assert ask(server.address, model="tiny", prompt="x").status_code == 404
    assert server.process.returncode == 0
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["started", "request", "request", "stopping", "stopped"]


def test_mistakes_are_one_sentence() -> None:
    with listen("127.0.0.1", 0) as bound:
        port = str(bound.getsockname()[1])
        taken = run("serve", "--model", "tiny", "--port", port)
    assert taken.returncode == 2 and f"cannot listen on 127.0.0.1, port {port}" in taken.stderr.splitlines()[-1]
    for words, sentence in (
        (("--sampler", "confidense"), "did you mean 'confidence'"),
        (("--set", "rtae=1"), "did you mean 'rate'"),
        (("--rows", "0"), "--rows must be at least 1"),
        (("--model", "tini"), "did you mean tiny"),
    ):
        wrong = run("serve", *words)
        assert wrong.returncode == 2 and sentence in wrong.stderr, wrong.stderr


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uncode.util.extras.importlib.util.find_spec", lambda name: None)
    assert "pip install 'uncode[serve]'" in run("serve").stderr


@pytest.mark.slow
def test_litellm(tmp_path: Path) -> None:
    python = os.environ.get("LITELLM_PYTHON", str(ROOT / ".venv" / "litellm" / "bin" / "python"))
    if not Path(python).exists():
        pytest.skip("litellm pins older packages: give the Python of an environment that has it as LITELLM_PYTHON")
    with served(tmp_path) as server:
        done = subprocess.run(
            [python, "-c", LITELLM, f"{server.address}/v1", STORY],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout.splitlines()[-1])
        plain = ask(server.address, prompt=STORY, max_tokens=24, seed=0).json()
        text, forwards = plain["choices"][0]["text"], plain["usage"]["completion_tokens_details"]["forwards"]
        faster = ask(server.address, prompt=STORY, max_tokens=24, seed=0, rate=0.5).json()["choices"][0]["text"]
    assert found["chat"] == found["text"] == text and found["stream"] == faster
    assert found["forwards"] == forwards and "did you mean 'rate'" in found["error"]


@pytest.mark.slow
@pytest.mark.parametrize("client", ["langchain", "npm"])
def test_clients_that_speak_openai(tmp_path: Path, client: str) -> None:
    """LangChain in an environment of its own, and the npm package: chats, texts, streams, /v1/responses, tools."""
    if client == "npm":
        packages = Path(os.environ.get("NPM_CLIENT", str(ROOT / ".venv" / "npm-client")))
        (tmp_path / "node_modules").symlink_to(packages / "node_modules")
        (tmp_path / "ask.mjs").write_text(NPM)
        command, needed = ["node", str(tmp_path / "ask.mjs")], packages / "node_modules" / "openai"
    else:
        needed = Path(os.environ.get("LANGCHAIN_PYTHON", str(ROOT / ".venv" / "langchain" / "bin" / "python")))
        command = [str(needed), "-c", LANGCHAIN]
    if not needed.exists():
        pytest.skip(f"the {client} client is not installed: see make verify")
    with served(tmp_path) as server:
        done = subprocess.run(
            [*command, f"{server.address}/v1", STORY], capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout.splitlines()[-1])
        asked = {"prompt": STORY, "max_tokens": 24, "seed": 0, "temperature": 0}
        text = ask(server.address, **asked).json()["choices"][0]["text"]
    assert text and [found[name] for name in ("chat", "stream", "text", "responses")] == [text] * 4
    assert "tools are not supported" in found["error"]


@pytest.mark.slow
def test_the_llm_command_line(tmp_path: Path) -> None:
    command = shutil.which("llm") or str(Path(sys.executable).with_name("llm"))
    if not Path(command).exists():
        pytest.skip("llm is not installed: pip install llm")
    with served(tmp_path) as server:
        (tmp_path / "extra-openai-models.yaml").write_text(
            f"- model_id: small\n  model_name: tiny\n  api_base: {server.address}/v1\n"
        )
        environment = os.environ | {"LLM_USER_PATH": str(tmp_path), "OPENAI_API_KEY": "none"}
        answers = []
        for words in ((), ("--no-stream",)):
            done = subprocess.run(
                [command, "-m", "small", STORY, "-o", "max_tokens", "24", "-o", "seed", "0", *words],
                capture_output=True, text=True, timeout=300, check=False, env=environment, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            answers.append(done.stdout.rstrip("\n"))
        text = ask(server.address, prompt=STORY, max_tokens=24, seed=0).json()["choices"][0]["text"]
    assert answers == [text.rstrip("\n")] * 2


def resident_bytes(process: int) -> int:
    fields = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in fields if line.startswith("VmRSS"))


@pytest.mark.slow
def test_a_thousand_idle_connections(tmp_path: Path) -> None:
    """The server answers beside them, its memory stays flat, and they are closed in time."""
    with served(tmp_path, "--connections", "1100", "--read-timeout", "15") as server:
        ask(server.address, prompt="1 + 1 =", max_tokens=8)
        before, port = resident_bytes(server.process.pid), int(server.address.rpartition(":")[2])
        idle = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(1000)]
        try:
            for number, one in enumerate(idle):
                if number % 2:
                    one.sendall(b"GET /health HTTP/1.1\r\n")
            assert ask(server.address, prompt="1 + 1 =", max_tokens=8).status_code == 200
            grown = resident_bytes(server.process.pid) - before
            assert grown < 64 * 2**20, f"{grown} bytes for 1,000 connections"
            deadline = time.monotonic() + 60
            for one in idle:
                one.settimeout(max(deadline - time.monotonic(), 0.1))
                while one.recv(4096):
                    pass
        finally:
            for one in idle:
                one.close()
        assert ask(server.address, prompt="1 + 1 =", max_tokens=8).status_code == 200
    assert server.process.returncode == 0
