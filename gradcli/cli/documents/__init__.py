"""Programs inside documents, notebooks and Markdown: run, and their outputs checked."""
