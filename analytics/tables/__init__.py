"""The tables of the store: their columns, the meanings of these, and their form in Parquet files."""
