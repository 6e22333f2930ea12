"""The mini-suite: every preset on the seven mini families, as a small version of the paper's Table 1."""
