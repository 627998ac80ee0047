"""The annotator's desk: the next item, its presentation, leases, drafts and submission; pages and API."""
