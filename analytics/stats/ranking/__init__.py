"""Rankings of generators, and whether judges rank alike in every language."""
