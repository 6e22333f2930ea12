"""`uncode serve`: a server with the interface of the OpenAI API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from ...core.errors import require
from ...core.support.reprs import counted
from ...models import folder_of
from ...samplers.options import DEFAULT_LENGTH, DEFAULT_SAMPLER
from ...server.settings import Origin, Replicas, ServerLimits, ServerSettings
from ...util.extras import check_installed
from .. import options as shared
from ..printing import loading

if TYPE_CHECKING:
    from ...server.service import Service

SUMMARY = "Serve a model to OpenAI clients."
LIMITS = ServerLimits()
PACKAGES = ("fastapi", "uvicorn", "prometheus_client")
EXAMPLES = {
    "tiny": "Question: Finn has 22 coins. Finn earns 24 coins. Finn sells 17 coins. Finn finds 22 coins. Finn triples "
    "the coins. Finn sells 23 coins. How many coins does Finn have now?\nAnswer:",
    "toy": "add 2 3 4",
}
"""What the live page begins with: a prompt that the model can answer."""


def command(
    model: shared.Model = "tiny",
    sampler: shared.SamplerName = DEFAULT_SAMPLER,
    settings: shared.SamplerSettings = None,
    frequency: shared.Frequency = None,
    host: Annotated[str, Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, Option(min=0, max=65535, metavar="N", help="The port to listen on; 0 takes a free one.")
    ] = 8000,
    api_key: Annotated[
        str | None,
        Option(
            metavar="KEY", envvar="UNCODE_API_KEY", show_envvar=False, help="Clients must send it; or UNCODE_API_KEY."
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="A host name of a proxy on this machine, without --api-key; may be repeated."),
    ] = None,
    name: Annotated[str | None, Option(metavar="NAME", help="The model's name in the API.  [default: its own]")] = None,
    length: Annotated[
        int | None,
        Option(
            min=1,
            metavar="N",
            help="Tokens to generate where a request does not say how many.  "
            f"[default: {DEFAULT_LENGTH}, or --max-tokens if less]",
        ),
    ] = None,
    rows: Annotated[int, Option("--rows", min=1, metavar="N", help="Rows in the batch.")] = LIMITS.rows,
    queue: Annotated[
        int, Option(min=0, metavar="N", help="Rows that may wait; beyond them a request is answered with 429.")
    ] = LIMITS.queue,
    max_prompt: Annotated[
        int, Option("--max-prompt", min=1, metavar="N", help="Tokens of a prompt, at most.")
    ] = LIMITS.prompt_tokens,
    max_tokens: Annotated[
        int, Option("--max-tokens", min=1, metavar="N", help="Tokens to generate, at most.")
    ] = LIMITS.max_tokens,
    context: Annotated[
        int | None,
        Option(min=2, metavar="N", help="Tokens of a prompt and its answer, at most.  [default: the model's context]"),
    ] = None,
    max_body: Annotated[
        int, Option("--max-body", min=1, metavar="BYTES", help="Bytes of a request, at most.")
    ] = LIMITS.body_bytes,
    connections: Annotated[
        int, Option(min=1, metavar="N", help="Connections at a time, at most.")
    ] = LIMITS.connections,
    timeout: Annotated[
        float, Option(min=0.1, metavar="SECONDS", help="Seconds after which a request is cancelled.")
    ] = LIMITS.seconds,
    read_timeout: Annotated[
        float, Option("--read-timeout", min=0.1, metavar="SECONDS", help="Seconds that a client may be silent or slow.")
    ] = LIMITS.read_seconds,
    constraint_timeout: Annotated[
        float, Option(min=0.1, metavar="SECONDS", help="Seconds to compile a constraint of a request.")
    ] = LIMITS.constraint_seconds,
    constraint_memory: Annotated[
        int, Option(min=1, metavar="BYTES", help="Bytes that compiling one may take.")
    ] = LIMITS.constraint_bytes,
    constraint_workers: Annotated[
        int, Option(min=1, metavar="N", help="Constraints that are compiled at a time.")
    ] = LIMITS.constraint_workers,
    grace: Annotated[
        float, Option(min=0, metavar="SECONDS", help="Seconds that running rows have to finish after a signal to stop.")
    ] = 30.0,
    log_prompts: Annotated[bool, Option("--log-prompts", help="Write prompts and answers to the log.")] = False,
    ray: Annotated[
        str | None,
        Option(metavar="[ADDRESS]", help="Serve with Ray Serve, on the cluster at ADDRESS or on this machine."),
    ] = None,
    replicas: Annotated[int, Option("--replicas", min=1, metavar="N", help="With --ray: replicas of the model.")] = 1,
    max_replicas: Annotated[
        int | None,
        Option(min=1, metavar="N", help="With --ray: replicas under load, at most.  [default: those of --replicas]"),
    ] = None,
    guidance: shared.Guidance = 0.0,
    device: shared.Device = None,
    dtype: shared.Dtype = None,
    weights: shared.Weights = None,
    revision: shared.Revision = None,
) -> None:
    """Serve a model with the interface of the OpenAI API: /v1/completions, /v1/chat/completions, /docs.

    Requests of all clients are decoded in one running batch. --sampler and --set are defaults: a request may name its
    own sampler and options. The log goes to standard error, one JSON object per line.

    Examples:

      uncode serve
      uncode serve --model GSAI-ML/LLaDA-8B-Instruct --sampler fast_dllm --set cache=dual --port 8080
      uncode serve --host 0.0.0.0 --api-key "$KEY"
      uncode serve --ray --replicas 2 --max-replicas 8
    """
    limits = ServerLimits(
        rows,
        queue,
        max_prompt,
        max_tokens,
        context,
        max_body,
        connections,
        seconds=timeout,
        read_seconds=read_timeout,
        constraint_seconds=constraint_timeout,
        constraint_bytes=constraint_memory,
        constraint_workers=constraint_workers,
    )
    tokens = length or min(DEFAULT_LENGTH, max_tokens)
    require(
        tokens <= max_tokens, f"--length {tokens} is above --max-tokens {max_tokens}: lower one or raise the other."
    )
    wanted = ServerSettings(
        name or _short(model), host, port, api_key, tuple(allow_host or ()), tokens, grace, log_prompts, limits
    )
    copies = Replicas(replicas, max_replicas or replicas, device == "cpu")
    _check_replicas(ray, copies, wanted)
    for module in PACKAGES:
        check_installed(module, "serve", "the server")
    found = shared.find_sampler(sampler, model)
    chosen = (found, shared.read_settings(found, settings, frequency), frequency)
    _serve(wanted, partial(_service, wanted, (model, device, dtype, weights, revision, guidance), chosen), ray, copies)


def _serve(settings: ServerSettings, build: Callable[[], Service], address: str | None, replicas: Replicas) -> None:
    """Serve in this process, or on the Ray cluster at an address."""

    def announce(where: str) -> None:
        typer.echo(f"{settings.name} at {where}/v1, a page to try it at {where}, its API at {where}/docs")

    if address is None:
        with loading():
            from ...server.run import serve

            service = build()
        serve(service, announce)
    else:
        check_installed("ray", "serve-ray", "a server on a cluster")
        with loading():
            from ...server.ray_deployment import serve_on_ray
        typer.echo(f"starting {counted(replicas.least, 'replica')} on Ray ...", err=True)
        serve_on_ray(build, settings, replicas, address, announce)


def _service(
    settings: ServerSettings,
    model: tuple[str, str | None, str | None, str | None, str | None, float],
    sampler: tuple[str, dict[str, object], str | None],
) -> Service:
    """Load the model and make its service: in this process, or in that of a replica."""
    from ...server.decoding.samplers import Samplers
    from ...server.service import Service
    from ..answering.choices import ModelChoice, SamplerChoice

    chosen = SamplerChoice(*sampler)
    denoiser, _ = ModelChoice(*model).load(lambda own: [chosen.build(own)], settings.length)
    name, _, _, weights, revision, guidance = model
    loaded = None if name == "toy" else str(denoiser.dtype).removeprefix("torch.")
    table = Path(chosen.frequency).name if chosen.frequency else None
    origin = Origin(_short(name), revision, loaded, weights, guidance, table)
    settings = replace(settings, origin=origin, example=EXAMPLES.get(name, ""))
    samplers = Samplers(denoiser, chosen.name, chosen.options, chosen.table(denoiser.frequency))
    return Service(denoiser, settings, samplers)


def _check_replicas(ray: str | None, replicas: Replicas, settings: ServerSettings) -> None:
    """Options that do not fit together are refused."""
    least, most = replicas.least, replicas.most
    require(most >= least, f"--max-replicas {most} is less than --replicas {least}: give at least {least}.")
    if ray is None:
        require(most == 1, "--replicas and --max-replicas need --ray: a server without Ray has one model.")
        return
    require(settings.port > 0, "--port 0 takes a free port, which --ray cannot: choose a port.")
    require(
        settings.limits.connections == LIMITS.connections,
        "--connections counts the connections of one process: limit those of --ray in the proxy before it.",
    )


def _short(model: str) -> str:
    """The model's name without the folders of this machine."""
    folder = folder_of(model)
    return model if folder is None or model == "tiny" else folder.resolve().name
