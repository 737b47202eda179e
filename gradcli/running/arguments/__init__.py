"""What stands on a command line: options, `NAME=VALUE` bindings, files."""
