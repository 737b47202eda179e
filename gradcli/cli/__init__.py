"""What a person types: the only place of gradcli that prints and exits."""
