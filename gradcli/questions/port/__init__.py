"""What gradcli would refuse in a script, each with what to write instead."""
