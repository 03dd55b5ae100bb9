"""The store: Parquet files of every table, the manifest that lists valid ones, and code that fills and places it."""
