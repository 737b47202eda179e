"""The syntax tree and its scopes."""
