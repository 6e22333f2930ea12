"""A plan as forwards of the network: all that depends on the plan and the rows, but not on the tokens."""
