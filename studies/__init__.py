"""What makes this project's own pages, from stored results: the card of `tiny`, the leaderboard, the page of papers.

It is not part of the package. Its commands run at the root of a checkout: `python -m studies.card`,
`python -m studies.leaderboard`, `python -m studies.papers`, `python -m studies.rows FILE`, `python -m studies.held_out`
and `python -m studies.training_programs`. `studies/measure.sh` decodes everything that the pages show.
"""
