"""Shared set-up: one thread per worker, so that parallel workers do not fight over the cores."""

import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("uncode", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("uncode")
