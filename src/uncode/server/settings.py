"""The settings of a server. Every limit is here, with its unit."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass


@dataclass(frozen=True)
class ServerLimits:
    """What the server accepts. A request beyond a limit is refused with 400, 408, 413 or 429."""

    rows: int = 32
    """Rows in the batch. A few short requests may join beyond it."""
    queue: int = 256
    """Rows that may wait: the next request is answered with 429."""
    prompt_tokens: int = 8192
    max_tokens: int = 4096
    """Tokens to generate, per row."""
    context: int | None = None
    """Prompt and answer together; None is the model's own context."""
    body_bytes: int = 2 * 1024 * 1024
    connections: int = 1024
    seconds: float = 600.0
    """From the arrival of a request to the end of its answer."""
    read_seconds: float = 20.0
    """For the headers of a request, for its body, for an answer that is not read, and for an idle connection."""
    choices: int = 32
    """Rows of one request: prompts times `n`."""
    constraint_seconds: float = 10.0
    """To compile a constraint, in a process of its own."""
    constraint_bytes: int = 1 << 30
    """Memory of that process."""
    constraint_workers: int = 2
    """Such processes at a time."""
    constraints: int = 64
    """Compiled constraints that are kept for later requests, and constraints that may wait to be compiled: the next
    request is answered with 429."""
    constraint_kept_bytes: int = 1 << 30
    """Memory of those that are kept. The rows that run keep theirs beside."""
    constraint_characters: int = 262_144
    """Of a constraint as JSON."""
    constraint_step_seconds: float = 2.0
    """Of a processor for the first look of a compiled constraint at all masks of its row, by an estimate. The batch
    waits for the looks at each step, which take a small part of it."""


@dataclass(frozen=True)
class Origin:
    """How the model was loaded, for those who repeat a decode without the server. It names no folder of the machine."""

    model: str
    revision: str | None = None
    dtype: str | None = None
    weights: str | None = None
    """The format that the layers' weights are packed in."""
    guidance: float = 0.0
    frequency: str | None = None
    """The table of --frequency; None is the model's own."""


@dataclass(frozen=True)
class ServerSettings:
    """How a server answers; the model and its sampler come on top."""

    name: str
    """The model's name in the API."""
    host: str = "127.0.0.1"
    port: int = 8000
    api_key: str | None = None
    hosts: tuple[str, ...] = ()
    """Names, beside the loopback ones, under which clients reach a server without a key."""
    length: int = 96
    """Tokens to generate where a request does not say."""
    grace_seconds: float = 30.0
    """How long running rows may take to finish after a signal to stop."""
    log_prompts: bool = False
    limits: ServerLimits = ServerLimits()
    origin: Origin | None = None
    example: str = ""
    """A prompt that the live page begins with."""

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True)
class Replicas:
    """How many replicas a server on Ray has. With more than `least`, they are added and removed with the load."""

    least: int = 1
    most: int = 1
    on_cpu: bool = False
    """Otherwise each replica takes a GPU, where the cluster has any."""
