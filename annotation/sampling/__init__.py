"""Curated datasets: a part of a dataset's items, drawn at random or chosen for balance, with a certificate."""
