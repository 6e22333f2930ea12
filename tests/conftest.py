"""Shared set-up: one thread per worker, so that parallel workers do not fight over the cores."""

import os
from collections.abc import Iterator

os.environ["HF_HUB_OFFLINE"] = "1"  # no test may wait for a network; those of the hub bring a server of their own

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("uncode", deadline=None, derandomize=True, max_examples=40)
settings.register_profile("soak", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "uncode"))


@pytest.fixture(scope="session", autouse=True)
def _models_on_the_cpu() -> Iterator[None]:
    """Tests that name no device mean the CPU, on a machine with a GPU too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("uncode.backbones.device.usual_device", lambda: "cpu")
        yield
