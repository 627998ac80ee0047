"""``panelbench stats``: files in, estimates out."""
