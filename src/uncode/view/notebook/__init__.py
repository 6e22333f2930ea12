"""What a notebook draws: traces and samplers as HTML."""
