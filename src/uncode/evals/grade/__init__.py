"""What graders share: finding the answer in a text, reading it, comparing it."""
