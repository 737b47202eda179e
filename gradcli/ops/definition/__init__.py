"""What an op is: its entry, its documentation, the dtypes it takes, its lints."""
