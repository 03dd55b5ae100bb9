"""Analytics of I/O logs: Darshan logs, traces and statistics as tables, queries over them, and reports."""
