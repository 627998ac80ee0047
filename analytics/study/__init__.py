"""The page Study: what was found in a campaign, in five sentences and four pictures, from stored answers."""
