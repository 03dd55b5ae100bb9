"""Results: the rows and their schema (`rows`), the files that hold them (`files`), `table` and picture (`plot`)."""
