"""Versions of a judge: alignments, proposals and searches, and examples."""
