"""Windows, reducers, and expressions over batches."""
