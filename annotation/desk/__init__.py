"""The annotator's desk: which item is next, what is shown of it, drafts, leases, submission; pages and API."""
