"""`uncode serve`: a server with the interface of the OpenAI API."""

from __future__ import annotations

from typing import Annotated

import typer

from ...extras import check_installed
from ..loading import loading
from ..options import (
    DEFAULT_LENGTH,
    Device,
    Dtype,
    Frequency,
    Guidance,
    Model,
    Revision,
    SamplerName,
    Settings,
    find_sampler,
    read_settings,
)

SUMMARY = "Serve a model to OpenAI clients."
Option = typer.Option
Host = Annotated[str, Option(metavar="ADDRESS", help="The address to listen on; the default is this machine alone.")]
Port = Annotated[int, Option(min=0, max=65535, metavar="N", help="The port to listen on; 0 takes a free one.")]
ApiKey = Annotated[
    str | None,
    Option(
        "--api-key", metavar="KEY", envvar="UNCODE_API_KEY", help="The key that clients must send.", show_envvar=True
    ),
]
Name = Annotated[str | None, Option("--name", metavar="NAME", help="The model's name in the API.  [default: its own]")]


def command(
    model: Model = "tiny",
    sampler: SamplerName = "uncode",
    settings: Settings = None,
    frequency: Frequency = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    api_key: ApiKey = None,
    name: Name = None,
    guidance: Guidance = 0.0,
    device: Device = None,
    dtype: Dtype = None,
    revision: Revision = None,
) -> None:
    """Serve a model with the interface of the OpenAI API.

    Requests of all clients are decoded in one running batch. --sampler and --set are the defaults: a request may name
    its own sampler and options.

    Examples:

      uncode serve
      uncode serve --model GSAI-ML/LLaDA-8B-Instruct --sampler fast_dllm --set cache=dual --port 8080
      UNCODE_API_KEY=secret uncode serve --host 0.0.0.0
    """
    for module in ("fastapi", "uvicorn", "prometheus_client"):
        check_installed(module, "serve", "the server")
    found = find_sampler(sampler, model)
    options = read_settings(found, settings)
    with loading():
        from ...server import settings as server_settings
        from ...server.decoding.samplers import Samplers
        from ...server.run import serve
        from ...server.service import Service
        from ..answering.choices import ModelChoice, SamplerChoice

        chosen = SamplerChoice(found, options, frequency)
        denoiser, _ = ModelChoice(model, device, dtype, revision, guidance).load(lambda own: [chosen.build(own)])
        table = chosen.table(denoiser.frequency)
    wanted = server_settings.Settings(
        name=name or _short(model), host=host, port=port, api_key=api_key, length=DEFAULT_LENGTH
    )
    serve(Service(denoiser, wanted, Samplers(denoiser, found, options, table)))


def _short(model: str) -> str:
    """The model's name without the folders of this machine."""
    from ...models import folder_of

    folder = folder_of(model)
    return model if folder is None or model == "tiny" else folder.resolve().name
