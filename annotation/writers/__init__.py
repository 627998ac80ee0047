"""Write tables to files that our readers and other programs read back with the same content. Pure."""
