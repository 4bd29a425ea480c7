"""Topics by number, for where there is no room for a name: in the signed token of an offer.

Numbers hold within one edition of the taxonomy, and tokens for half an hour: after a change of edition some events of
that half hour may be learned under another topic. The event log has names.
"""

import functools
from typing import Final

from adloom.taxonomy.iab import load_content

NO_TOPIC: Final = 0  # The offer is not of a contextual slot.
FILLER: Final = "filler"  # The topic of offers on pages without one.


@functools.cache
def _list_topics() -> tuple[str | None, ...]:
    return (None, FILLER, *sorted(node.id for node in load_content()))


@functools.cache
def _find_numbers() -> dict[str | None, int]:
    return {topic: number for number, topic in enumerate(_list_topics())}


def number_topic(topic: str) -> int:
    """Return the number of a topic; one that the taxonomy does not know counts as none."""
    return _find_numbers().get(topic, NO_TOPIC)


def find_topic(number: int) -> str | None:
    """Return the topic of a number; None where there is none."""
    topics = _list_topics()
    return topics[number] if number < len(topics) else None
