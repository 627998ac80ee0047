"""Dates and numbers in Arabic: what Django's own formats leave to English."""

DATETIME_FORMAT = "j F Y، H:i"
SHORT_DATETIME_FORMAT = "d/m/Y H:i"
TIME_FORMAT = "H:i"
# As in the figures beside them: 0.25, and 1,500 where thousands are separated (CLDR, digits 0 to 9).
DECIMAL_SEPARATOR = "."
THOUSAND_SEPARATOR = ","
