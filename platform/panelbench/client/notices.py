"""Who else is told: webhooks, and share links. For leads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from panelbench.client import types
from panelbench.client.wire import Wire, operation


class Notices(Wire):
    @operation("GET", "/projects/{project}/webhooks/")
    def webhooks(self) -> Iterator[types.Webhook]:
        """The project's webhooks."""
        return self.pages(self.at("webhooks/"))

    @operation("POST", "/projects/{project}/webhooks/")
    def add_webhook(self, address: str, events: Sequence[types.EventsEnum]) -> types.Secret:
        """Have an address told of events. The answer alone holds the secret that signatures are made with."""
        said = {"address": address, "events": list(events)}
        return cast(types.Secret, self.json("POST", self.at("webhooks/"), json=said))

    @operation("GET", "/projects/{project}/webhooks/{webhook}/")
    def webhook(self, webhook: int) -> types.Webhook:
        """One webhook."""
        return cast(types.Webhook, self.json("GET", self.at("webhooks/{}/", webhook)))

    @operation("PATCH", "/projects/{project}/webhooks/{webhook}/")
    def change_webhook(
        self, webhook: int, *, events: Sequence[types.EventsEnum] | None = None, on: bool | None = None
    ) -> types.Webhook:
        """Choose other events, turn it off or on again."""
        said: dict[str, Any] = {} if events is None else {"events": list(events)}
        said |= {} if on is None else {"on": on}
        return cast(types.Webhook, self.json("PATCH", self.at("webhooks/{}/", webhook), json=said))

    @operation("DELETE", "/projects/{project}/webhooks/{webhook}/")
    def remove_webhook(self, webhook: int) -> None:
        """Forget it, and what was sent to it."""
        self.send("DELETE", self.at("webhooks/{}/", webhook))

    @operation("POST", "/projects/{project}/webhooks/{webhook}/secret/")
    def renew_secret(self, webhook: int) -> types.Secret:
        """Another secret; the one before signs nothing more."""
        return cast(types.Secret, self.json("POST", self.at("webhooks/{}/secret/", webhook)))

    @operation("POST", "/projects/{project}/webhooks/{webhook}/test/")
    def test_webhook(self, webhook: int) -> types.Delivery:
        """Have a test sent; look at the deliveries for what came of it."""
        return cast(types.Delivery, self.json("POST", self.at("webhooks/{}/test/", webhook)))

    @operation("GET", "/projects/{project}/webhooks/{webhook}/deliveries/")
    def deliveries(self, webhook: int) -> Iterator[types.Delivery]:
        """What was sent in the last thirty days, and what is to be."""
        return self.pages(self.at("webhooks/{}/deliveries/", webhook))

    @operation("POST", "/projects/{project}/webhooks/{webhook}/deliveries/{delivery}/again/")
    def send_again(self, webhook: int, delivery: int) -> types.Delivery:
        """Have one sent once more, under the id it has."""
        there = self.at("webhooks/{}/deliveries/{}/again/", webhook, delivery)
        return cast(types.Delivery, self.json("POST", there))

    # --- share links ------------------------------------------------------------------------------------------------
    @operation("GET", "/projects/{project}/shares/")
    def shares(self) -> Iterator[types.Share]:
        """The links that work."""
        return self.pages(self.at("shares/"))

    @operation("POST", "/projects/{project}/shares/")
    def share(self, campaign: int, label: str, *, days: int | None = None) -> types.ShareAddress:
        """Make a link to one campaign's numbers. The answer alone holds its address."""
        said = {"campaign": campaign, "label": label, "days": days}
        return cast(types.ShareAddress, self.json("POST", self.at("shares/"), json=said))

    @operation("DELETE", "/projects/{project}/shares/{link}/")
    def revoke_share(self, link: int) -> None:
        """Revoke a link: it stops working at once."""
        self.send("DELETE", self.at("shares/{}/", link))
