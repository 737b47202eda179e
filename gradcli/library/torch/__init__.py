"""What stands around torch's tensors: its settings, its files, its tests."""
