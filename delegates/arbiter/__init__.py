"""The arbiter: a service that gives the jobs of a machine I/O nodes, and others when jobs come and go."""
