"""Django's PostgreSQL backend for web requests: waits end when the server does not answer (`accounts.outages`)."""
