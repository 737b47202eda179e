"""Activations, softmax, attention, dropout, embeddings, distances."""
