"""gradcli for Python programs: what `import gradcli` offers, imported when it is first used."""
