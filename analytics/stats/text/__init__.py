"""Surface metrics of texts: tokens, diversity, repetition, rationales."""
