"""Files that are stored as several: their index, and what makes one plain file of them."""
