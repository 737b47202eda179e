"""The pages of `gradcli help`: ops, codes, topics of the manual."""
