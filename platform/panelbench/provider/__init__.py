"""A simulated OpenAI-compatible provider, run as its own process: ``python -m panelbench.provider``.

It replaces a real endpoint in the demo, the tests and the benches, and says so in every reply. It knows no
database and no Django. The name of the model chooses the behaviour: see ``answers`` (what it says) and ``server`` (how
it misbehaves).
"""
