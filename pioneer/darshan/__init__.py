"""Logs in Darshan's own format from the tracer's records: tools that read Darshan logs read runs of this library."""
