"""How Ray gets its workers: as forks of a process that has imported everything."""
