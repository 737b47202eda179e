"""Editors: `gradcli lsp`, and the language's tokens for those that colour text."""
