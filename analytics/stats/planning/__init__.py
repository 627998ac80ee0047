"""What comes next: how many labels, and the trust gate."""
