"""From a name or a folder to a model: hub, checkpoint, device, tokenizer."""
