"""One bidirectional transformer: network, kernels, KV cache, CUDA graphs, session."""
