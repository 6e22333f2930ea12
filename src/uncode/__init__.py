"""Decode, compare and serve masked diffusion language models.

Names are loaded when they are first used: `import uncode` does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .core.errors import Stalled, UncodeError
from .core.support.above import register
from .version import __version__

if TYPE_CHECKING:
    from .backbones.function import FunctionDenoiser
    from .backbones.guidance import Guided
    from .backbones.loading.load import load, wrap
    from .constraints.constraint import constraint
    from .core.canvas import Canvas
    from .core.pieces.policy import Policy, Sampler
    from .core.stepper.advance import Step
    from .core.trace.trace import Trace
    from .frequency import FrequencyTable
    from .generation.decider import Decider
    from .generation.decoding import decode, steps
    from .generation.generate import canvas_from_texts, generate
    from .generation.likelihood import log_likelihood
    from .generation.order_choice import two_orders
    from .generation.threshold import choose_threshold
    from .rollouts.rollout import Rollout
    from .rollouts.run import rollout
    from .samplers import interventions, legacy, presets

__all__ = [
    "Canvas",
    "Decider",
    "FrequencyTable",
    "FunctionDenoiser",
    "Guided",
    "Policy",
    "Rollout",
    "Sampler",
    "Stalled",
    "Step",
    "Trace",
    "UncodeError",
    "__version__",
    "canvas_from_texts",
    "choose_threshold",
    "constraint",
    "decode",
    "generate",
    "interventions",
    "legacy",
    "load",
    "log_likelihood",
    "presets",
    "rollout",
    "steps",
    "two_orders",
    "wrap",
]

_MODULE_OF = {
    "Canvas": "core.canvas",
    "Decider": "generation.decider",
    "FrequencyTable": "frequency",
    "FunctionDenoiser": "backbones.function",
    "Guided": "backbones.guidance",
    "Policy": "core.pieces.policy",
    "Rollout": "rollouts.rollout",
    "Sampler": "core.pieces.policy",
    "Step": "core.stepper.advance",
    "Trace": "core.trace.trace",
    "canvas_from_texts": "generation.generate",
    "choose_threshold": "generation.threshold",
    "constraint": "constraints.constraint",
    "decode": "generation.decoding",
    "generate": "generation.generate",
    "interventions": "samplers.interventions",
    "legacy": "samplers.legacy",
    "load": "backbones.loading.load",
    "log_likelihood": "generation.likelihood",
    "presets": "samplers.presets",
    "rollout": "rollouts.run",
    "steps": "generation.decoding",
    "two_orders": "generation.order_choice",
    "wrap": "backbones.loading.load",
}
"""The module of every name that is loaded on first use."""
_MODULES = ("interventions", "legacy", "presets")
"""Names that are modules themselves."""


register(
    sampler_html="uncode.view.notebook:sampler_html",
    trace_html="uncode.view.notebook:trace_view",
    trace_frame="uncode.view.frames:trace_frame",
    load_text="uncode.util.file_kinds:load_text",
    save_text="uncode.util.file_kinds:save_text",
)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'uncode' has no attribute '{name}'", name=name, obj=import_module(__name__))
    module = import_module(f".{_MODULE_OF[name]}", __name__)
    value = module if name in _MODULES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__]
