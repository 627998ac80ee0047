"""What pages keep in the content cache outlives an upgrade, and has to be readable or out of reach afterwards."""

from __future__ import annotations

import pickle

import pytest
from django.conf import settings
from django.core.cache import caches

from analytics.ratings.item_attributes import AttributeChoices, attribute_choices
from tests import make
from tests.cast import Cast


def test_what_pages_keep_is_apart_for_each_release() -> None:
    """A release can't read what another one pickled: an upgrade has to find its own cache empty."""
    assert caches["content"].version == settings.VERSION
    key = caches["content"].make_key("kept")
    assert key != caches["content"].make_key("kept", version="0.0.0") and settings.VERSION in key


@pytest.mark.django_db
def test_choices_of_attributes_are_kept_as_plain_values(cast: Cast) -> None:
    """Modules may move within a release, too: what is kept names none of our classes."""
    dataset = make.dataset(cast.kassa, 2)
    attribute_choices(dataset)
    kept = caches["content"].get(f"attributes:{dataset.pk}:{dataset.created_at.timestamp()}")
    assert type(kept) is tuple and b"analytics" not in pickle.dumps(kept)
    assert attribute_choices(dataset) == AttributeChoices(*kept)
