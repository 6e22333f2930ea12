"""Decoding for masked diffusion language models: one stepper, every published sampler, calibrated order."""

from .backbones.function import FunctionDenoiser
from .backbones.guidance import Guided
from .backbones.likelihood import log_likelihood
from .backbones.load import load, wrap
from .core.canvas import Canvas
from .core.decode import Step, decode, steps
from .core.errors import Stalled, UncodeError
from .core.policy import Policy, Sampler
from .core.trace import Trace
from .frequency import FrequencyTable
from .generate import generate
from .samplers import interventions, legacy, presets
from .version import __version__

__all__ = [
    "Canvas",
    "FrequencyTable",
    "FunctionDenoiser",
    "Guided",
    "Policy",
    "Sampler",
    "Stalled",
    "Step",
    "Trace",
    "UncodeError",
    "__version__",
    "decode",
    "generate",
    "interventions",
    "legacy",
    "load",
    "log_likelihood",
    "presets",
    "steps",
    "wrap",
]
