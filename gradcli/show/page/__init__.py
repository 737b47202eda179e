"""The page that steps: one HTML file with the program, the graph and every step of both passes."""
