"""Tables -> files that our readers, and other people's programs, read back to the same content. Pure."""
