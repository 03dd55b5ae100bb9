"""Statistics of histories of jobs: changes of level, outliers, differences between sets, correlations."""
