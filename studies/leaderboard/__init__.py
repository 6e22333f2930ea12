"""The page of the leaderboard: tables, findings in sentences, and its figure."""
