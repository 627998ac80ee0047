"""The check-up of a dataset: what its texts hold that a study should know of before anybody rates them."""
