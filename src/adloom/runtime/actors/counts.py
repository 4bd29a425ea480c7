"""What a host counts, as plain numbers that a collector reads."""


class ActorCounts:
    """Everything since the start of the process."""

    __slots__ = ("batches", "failed", "fenced", "refused", "steps", "unpublished")

    def __init__(self) -> None:
        self.steps = 0  # Messages that were taken, alarms included.
        self.batches = 0
        self.failed = 0  # Messages that came to nothing: their step failed, or what came of it was not kept.
        self.refused = 0  # Messages for which there was no room.
        self.fenced = 0  # Times that an entity was found to be somebody else's.
        self.unpublished = 0  # News that nobody could be told.
