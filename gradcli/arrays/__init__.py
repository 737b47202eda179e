"""Arrays: which module they belong to, dtypes and promotion, storage, and the text of a tensor."""
