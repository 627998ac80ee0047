"""Every statistic and the report that computes it, declared once. Importing it loads neither pandas nor scipy."""
