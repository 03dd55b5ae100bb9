"""Results: their files (`files`), `table` and picture (`plot`); their schema is `common.results`."""
