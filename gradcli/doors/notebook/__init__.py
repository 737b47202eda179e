"""Notebooks: `%%gradcli` in a notebook of Python, and a kernel of gradcli's own."""
