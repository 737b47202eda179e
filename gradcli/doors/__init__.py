"""Other ways in than the command line: each rests on the runs that the command line rests on."""
