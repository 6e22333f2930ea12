"""The mini-suite: every preset on the seven families, the paper's Table 1 in miniature."""
