"""What programs find ready: builtins and the modules that they import."""
