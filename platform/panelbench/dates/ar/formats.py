"""Arabic formats of dates and times that Django itself does not define, so that English ones would be used."""

DATETIME_FORMAT = "j F Y، H:i"
SHORT_DATETIME_FORMAT = "d/m/Y H:i"
TIME_FORMAT = "H:i"
