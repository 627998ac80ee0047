"""Dates in Arabic: what Django's own formats leave to English."""

DATETIME_FORMAT = "j F Y، H:i"
SHORT_DATETIME_FORMAT = "d/m/Y H:i"
TIME_FORMAT = "H:i"
