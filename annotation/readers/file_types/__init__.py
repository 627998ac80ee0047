"""Readers of files that are no text: a module for each format of `annotation.readers.formats` that names one.

Such a module has `read_file(name, stream, layout, problems)`, which yields the rows of a file. That of a format with
sheets has besides `names_of_sheets(name, stream)`, and `first_rows(name, stream, layout, most)` for a page.
"""
