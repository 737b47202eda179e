"""The backward graph as a picture: SVG, laid out here."""
