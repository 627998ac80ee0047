"""May a judge be trusted: thresholds, decisions and their reasons, alignments, and judges side by side."""
