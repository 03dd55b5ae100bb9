"""The climate of an I/O system: distributions over months, and the watch for changes of performance."""
