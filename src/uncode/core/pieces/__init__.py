"""What a sampler is made of, as data: scores, selectors, quotas, blocks, remaskers, stop rules, caches."""
