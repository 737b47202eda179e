"""Arrays: dtypes and promotion, storage, strides and views, devices, and the text of a tensor."""
