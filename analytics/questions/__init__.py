"""What is asked of a campaign's ratings: the question, its parameters, and what it comes to on one campaign."""
