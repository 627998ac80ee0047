"""Guidelines, training, exams and controls: what annotators do before their work, and what is checked during it."""
