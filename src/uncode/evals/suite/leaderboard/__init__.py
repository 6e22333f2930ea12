"""The leaderboard: every preset by accuracy and forwards, with paired tests, in the runs of one or two seeds."""
