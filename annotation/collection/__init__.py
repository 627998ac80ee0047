"""People write here: prompts, and texts."""
