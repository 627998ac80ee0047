"""The answer to a question: what its plan's reports compute."""
