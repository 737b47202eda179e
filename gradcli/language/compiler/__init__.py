"""From the syntax tree to closures: one handler for each class of node."""
