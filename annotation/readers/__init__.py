"""Files as they come: bytes -> rows, or errors with file, line and column. Pure."""
