"""From text to the syntax tree: tokens, lexer, tables, parser."""
