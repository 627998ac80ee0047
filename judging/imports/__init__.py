"""Imports of other people's verdicts, and of whole studies."""
