"""The store: Parquet files of every table, the manifest that says which are valid, and what fills and places them."""
