"""The arbiter beside Slurm: which jobs it runs, from its lists of jobs, or from its prolog and epilog."""
