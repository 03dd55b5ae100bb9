"""Programs whose problem is known, which tests run under other tools and judge by the truth."""
