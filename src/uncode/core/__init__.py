"""The embedded vocabulary of decoding: pieces, the stepper and the trace. Knows no model, task or sampler."""
