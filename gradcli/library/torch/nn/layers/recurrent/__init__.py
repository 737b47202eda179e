"""Recurrent layers and cells, and sequences packed for them."""
