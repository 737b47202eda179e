"""Builds the syntax tree while the parser reads: one action for each rule that needs one."""
