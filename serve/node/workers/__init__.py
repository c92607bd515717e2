"""Workers of Ray, as forks of a process that has imported everything."""
