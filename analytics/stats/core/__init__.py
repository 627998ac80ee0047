"""What every statistic stands on: the ratings table, scales, estimates, intervals and resampling."""
