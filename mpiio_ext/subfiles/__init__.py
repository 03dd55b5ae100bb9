"""Files that are stored as several: their index, and the ways to make one plain file of them."""
