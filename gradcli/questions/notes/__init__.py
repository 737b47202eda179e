"""What the errors of a run are told with: where a graph was cut, how to give a name a value."""
