"""Logs in Darshan's own format of what the tracer saw: tools that read Darshan logs read runs of this library."""
