"""Readers of files that are not text: `annotation.readers.formats` names the module of each format.

Each module has `read_file(name, stream, layout, problems)`, which yields the rows of a file. The module of a format
with sheets also has `names_of_sheets(name, stream)`, and `first_rows(name, stream, layout, most)` for a page.
"""
