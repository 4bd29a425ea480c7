"""Which campaigns their pace leaves out of one request."""

# pure

from collections.abc import Callable, Collection, Iterable, Iterator


class PaceGate(Collection[int]):
    """The campaigns that are left out of a request: each is drawn once, when it is first looked at.

    So a campaign that is left out neither wins, nor sets the price of another, nor keeps a fallback away.
    """

    def __init__(self, draw: Callable[[int], bool], left_out: Iterable[int]) -> None:
        self.draw = draw
        self._drawn = dict.fromkeys(left_out, True)
        self._not_held: set[int] = set()

    def __contains__(self, campaign_key: object) -> bool:
        assert isinstance(campaign_key, int)
        known = self._drawn.get(campaign_key)
        if known is None:
            known = self._drawn[campaign_key] = self.draw(campaign_key)
        return known

    def __iter__(self) -> Iterator[int]:
        return (key for key, is_out in self._drawn.items() if is_out)

    def __len__(self) -> int:
        return sum(self._drawn.values())

    def list_paced(self) -> frozenset[int]:
        """Return those that their pace leaves out: the others could not be held."""
        return frozenset(self) - self._not_held

    def add(self, campaign_key: int) -> None:
        """Leave a campaign out that could not be held."""
        self._drawn[campaign_key] = True
        self._not_held.add(campaign_key)
