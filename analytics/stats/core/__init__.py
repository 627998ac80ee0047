"""The basis of every statistic: the ratings table, scales, estimates, intervals and resampling."""
