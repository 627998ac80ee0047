"""Compute a campaign's numbers: jobs, coded columns of scores, and cells that are stored one by one."""
