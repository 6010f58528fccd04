"""What is computed of records and rows: windows, reducers, expressions over batches."""
