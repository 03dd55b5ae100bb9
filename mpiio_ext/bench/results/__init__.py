"""Results: the files that hold them (`files`), `table` and picture (`plot`); their schema is `common.results`."""
