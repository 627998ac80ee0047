"""What leaves a campaign: exports and their files, bundles, training sets, data cards, share links."""
