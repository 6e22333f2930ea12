"""lm-evaluation-harness: our denoisers as a model, our benchmarks as tasks, generated code in our sandbox.

Only `launch` may be imported without the extra `lm-eval`.
"""
