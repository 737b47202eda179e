"""The backward graph: tree, steps, DOT, Mermaid."""
