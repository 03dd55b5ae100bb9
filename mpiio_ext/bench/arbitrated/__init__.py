"""Two small jobs under a live arbiter, once for each policy, as ``mpiio-ext bench arbitration`` runs them."""
