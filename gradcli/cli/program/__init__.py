"""One run of one program: `Run`, its report, and running it again."""
