"""The one door to paid models: whoever asks a model (judges, proposals of versions, makers of items) asks through it.

The wire of a provider's API, the client, the limits, what requests may cost, what they are booked at, and what projects
may spend. It knows no judge and no run: those who ask register what they have spent (`budgets.register`).
"""
