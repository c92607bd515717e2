"""The debug port: rules, statistics and profiles, for an operator when something is wrong."""
