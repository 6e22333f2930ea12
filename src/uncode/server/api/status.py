"""The routes that say what there is and how it goes: models, samplers, health, metrics, docs."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter
from fastapi.responses import Response

from ..errors import ApiError, Json, json_response
from ..service import Service
from .replies import ModelAnswer, ModelList, Responses, errors
from .sampler_list import sampler_list

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
METRICS: Responses = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **errors(401, 403)}
ONE_MODEL: Responses = {200: {"model": ModelAnswer}, **errors(401, 403, 404)}
MODELS: Responses = {200: {"model": ModelList}, **errors(401, 403)}


def status_routes(service: Service) -> APIRouter:
    """The routes, over one service."""
    routes = APIRouter()

    @routes.get("/v1/models", summary="The model.", responses=MODELS)
    async def models() -> Response:
        return json_response({"object": "list", "data": [_model(service)]})

    @routes.get("/v1/models/{name:path}", summary="One model.", responses=ONE_MODEL)
    async def model(name: str) -> Response:
        service.check_model(name)
        return json_response(_model(service))

    @routes.get("/v1/samplers", summary="The samplers, with their options.", responses=errors(401, 403))
    async def samplers() -> Response:
        return json_response({"object": "list", "data": sampler_list(service.samplers)})

    @routes.get("/health", summary="Whether the server runs.", responses=errors(403, 503))
    async def health() -> Response:
        if not service.thread.is_healthy:
            stalled = f"the step that runs began {service.thread.step_age:.0f} s ago"
            reason = stalled if service.thread.has_stalled else "forwards fail"
            raise ApiError(503, f"{reason}: restart the server.", code="unhealthy")
        return json_response({"status": "ok"})

    @routes.get("/ready", summary="Whether the server takes requests.", responses=errors(403, 503))
    async def ready() -> Response:
        if not service.is_ready:
            raise ApiError(503, "the server takes no requests now.", code="not_ready", retry_after=5)
        return json_response({"status": "ready"})

    @routes.get("/metrics", summary="Counters for Prometheus.", responses=METRICS)
    async def metrics() -> Response:
        return Response(await service.read_metrics(), media_type=METRICS_TYPE)

    return routes


def _model(service: Service) -> Json:
    denoiser = service.denoiser
    return {
        "id": service.settings.name,
        "object": "model",
        "created": service.began,
        "owned_by": "uncode",
        "context": service.prompts.context,
        "mask_id": denoiser.mask_id,
        "has_chat_template": service.prompts.has_chat_template,
        "has_kv_cache": denoiser.has_kv_cache,
        "has_frequency_table": service.samplers.has_table,
        "default_sampler": service.samplers.default,
        "default_options": service.samplers.default_options,
        "default_length": service.settings.length,
        "example": service.settings.example,
        "origin": None if service.settings.origin is None else asdict(service.settings.origin),
    }
