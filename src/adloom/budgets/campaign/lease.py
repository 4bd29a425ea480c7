"""A lease: a part of a campaign's budget that one delivery process gives out as holds without asking.

    granted = unassigned + holding + charged + expired

What is granted and neither charged nor expired is outstanding: it may still be spent, so no other process
gets it. Holds are kept by the second in which their offers were made. That second is in the offers'
tokens, so an unconfirmed hold is released to the second.

An offer may be confirmed before its process has reported it. Such charges are `ahead` of the reports,
and the amounts of their seconds are negative until the report comes. The unassigned part of the lease
covers them. So nothing is spent that was not granted, in whatever order messages arrive.

The offers of a lease `by_click` hold what they are expected to cost, which is less than a click. Such holds limit
how much is offered and guarantee no charge: a click is charged where it fits what is left of the budgets.
"""

# pure

from collections.abc import Mapping
from datetime import date

import msgspec

from adloom.core.money import Micros

_changed = msgspec.structs.replace


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """One process's lease of one campaign, for one window of its daily budget."""

    number: int
    session: int
    window: int
    day: date
    is_by_click: bool = False  # Its offers are charged by clicks.
    granted: Micros = Micros(0)
    given: Micros = Micros(0)  # As far as the process has reported.
    charged: Micros = Micros(0)
    expired: Micros = Micros(0)
    ahead: Micros = Micros(0)  # Charged, and not reported as given yet.
    reported: int = 0  # The last report of the process that was taken.
    active_second: int = 0  # In which it was last granted or reported something.
    closed_second: int | None = None  # Its process is gone: what it may have given counts as given then.
    # Amount by second that was offered and is neither charged nor expired.
    held: dict[int, int] = {}
    # Reported seconds that were ahead of our clock, and when they were reported.
    heard: dict[int, int] = {}

    @property
    def unassigned(self) -> Micros:
        """What the process can still give, as far as it has reported."""
        return Micros(self.granted - self.given)

    @property
    def holding(self) -> Micros:
        """Given, and may still be charged."""
        return Micros(self.given - self.charged - self.expired)

    @property
    def outstanding(self) -> Micros:
        return Micros(self.granted - self.charged - self.expired)

    @property
    def is_settled(self) -> bool:
        return self.outstanding == 0 and not self.held

    @property
    def is_sound(self) -> bool:
        """Whether the process can have given what it reports; if not, one side has lost its memory."""
        return self.unassigned >= self.ahead

    def find_oldest_hold(self) -> int | None:
        """Return the second of the oldest hold; one from the future counts as of when it was reported."""
        held, heard = self.held, self.heard
        if held and not heard and held[oldest := min(held)] > 0:
            return oldest
        return min((heard.get(at, at) for at, amount in held.items() if amount > 0), default=None)

    def has_expired(self, second: int, *, released_until: int) -> bool:
        """Whether the hold of an offer made in `second` was released."""
        return self.heard.get(second, second) <= released_until

    def covers(self, second: int, amount: Micros) -> bool:
        """Whether a charge for an offer of a second is within what was granted for it."""
        held = max(0, self.held.get(second, 0))
        if self.closed_second is None:
            return amount - held <= self.unassigned - self.ahead
        return amount <= held + (self.held.get(self.closed_second, 0) if second != self.closed_second else 0)

    def reported_given(self, given: tuple[tuple[int, int], ...], *, report: int, second: int) -> "Lease":
        assert report > self.reported, "reports are taken once, in order"
        if not given:
            return _changed(self, reported=report)
        held, heard = dict(self.held), self.heard
        total = ahead = 0
        for at, amount in given:
            assert amount > 0, "an offer has a price"
            before = held.get(at, 0)
            held[at] = before + amount
            total += amount
            ahead += min(amount, max(0, -before))
            if at > second and at not in heard:
                heard = {**heard, at: second}
            if not held[at]:
                del held[at]
        return _changed(
            self,
            given=Micros(self.given + total),
            ahead=Micros(self.ahead - ahead),
            reported=report,
            active_second=max(self.active_second, second),
            held=held,
            heard=heard,
        )

    def granted_up_to(self, unassigned: Micros, *, second: int) -> "Lease":
        """Leave the process with so much to give; more than before is a grant, less is a return."""
        left = max(unassigned, self.ahead)
        if left == self.unassigned:
            return self
        active = max(self.active_second, second) if left > self.unassigned else self.active_second
        return _changed(self, granted=Micros(self.given + left), active_second=active)

    def charged_at(self, second: int, amount: Micros) -> "Lease":
        charged = self.charged_in({second: amount})
        assert charged is not None, "only what was granted is charged"
        return charged

    def charged_in(self, sums: Mapping[int, int]) -> "Lease | None":
        """Charge what the offers of some seconds cost, one second after the other; None if one is not covered."""
        held, ahead, total = dict(self.held), self.ahead, 0
        unassigned, closed = self.unassigned, self.closed_second
        for second, amount in sums.items():
            here = held.get(second, 0)
            if amount <= here:
                if amount < here:
                    held[second] = here - amount
                else:
                    del held[second]
            else:
                # As in `covers`: more than is held for its second comes out of what is granted and not given.
                taken = max(0, here)
                missing = amount - taken
                if taken:
                    del held[second]
                if closed is None:
                    if missing > unassigned - ahead:
                        return None
                    _add(held, second, -missing)
                    ahead = Micros(ahead + missing)
                else:
                    if missing > (held.get(closed, 0) if second != closed else 0):
                        return None
                    _add(held, closed, -missing)
            total += amount
        return _changed(self, held=held, ahead=ahead, charged=Micros(self.charged + total))

    def clicked_at(self, second: int, amount: Micros) -> "Lease":
        """Let a click take what is held for the offers of its second, as far as it costs that much."""
        taken = min(amount, max(0, self.held.get(second, 0)))
        if not taken:
            return self
        held = dict(self.held)
        _add(held, second, -taken)
        return _changed(self, held=held, charged=Micros(self.charged + taken))

    def expired_until(self, second: int) -> "Lease":
        heard = self.heard
        if heard:
            heard = {at: told for at, told in heard.items() if at > second}
            due = [at for at, amount in self.held.items() if amount > 0 and self.heard.get(at, at) <= second]
        else:
            due = [at for at in self.held if at <= second and self.held[at] > 0]
        if not due:
            return self if len(heard) == len(self.heard) else _changed(self, heard=heard)
        held = dict(self.held)
        back = sum(held.pop(at) for at in due)
        return _changed(self, held=held, heard=heard, expired=Micros(self.expired + back))

    def closed_at(self, second: int) -> "Lease":
        """Count all that the process may have given as given now: it will never report again."""
        held = {at: amount for at, amount in self.held.items() if amount > 0}
        if unknown := self.unassigned - self.ahead:
            held[second] = held.get(second, 0) + unknown
        return _changed(self, given=self.granted, ahead=Micros(0), closed_second=second, held=held)


def _add(held: dict[int, int], second: int, amount: int) -> None:
    after = held.get(second, 0) + amount
    if after:
        held[second] = after
    else:
        held.pop(second, None)
