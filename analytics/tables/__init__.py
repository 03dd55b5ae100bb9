"""The tables of the store: which columns they have, what those mean, and how they lie in Parquet files."""
