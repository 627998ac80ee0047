"""A judge against the panel: calibration, the alternative annotator test, corrected means, audits."""
