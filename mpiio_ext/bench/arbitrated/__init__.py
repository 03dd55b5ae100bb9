"""Two small jobs under a live arbiter, once for each policy: what ``make bench`` shows of arbitration."""
