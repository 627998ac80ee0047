"""The pages of the accounts app, a module for each subject."""
