"""I/O delegates: processes that own the pages of open files, cache, flush and prefetch them for the program's ranks."""
