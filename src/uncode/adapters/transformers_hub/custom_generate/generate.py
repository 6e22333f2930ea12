"""What `model.generate(custom_generate="this folder", trust_remote_code=True)` runs."""

from typing import Any

from uncode.adapters.transformers import generate as fill_masks


def generate(model: Any, streamer: Any = None, **arguments: Any) -> Any:
    """Let transformers prepare the inputs as for any `generate`, and then call our function."""
    given = {name: value for name, value in arguments.items() if value is not None}
    return model.generate(custom_generate=fill_masks, stream_to=streamer, **given)
