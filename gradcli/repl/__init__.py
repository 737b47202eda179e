"""The REPL: the editor, completion and history."""
