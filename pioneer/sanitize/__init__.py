"""Phase A: from raw traces to the operations of the application, each with its file and offset.

Source: He, Du, Narasimhamurthy, "PIONEER: A Solution To Parallel I/O Workload Characterization And Generation",
section V-A and Table II.
"""
