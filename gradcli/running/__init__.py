"""One run of one program: its arguments, the run and its report, running again, the process."""
