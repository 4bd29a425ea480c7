"""What one request, event, charge, lease report and page cost: measured by `adloom bench capacity`."""
# pure

from datetime import datetime

import msgspec


class Coefficients(msgspec.Struct, frozen=True, kw_only=True):
    """CPU in microseconds of one core and sizes in bytes, with where and when they were measured."""

    measured_at: datetime
    commit: str
    version: str
    python: str
    processor: str
    cpus: int

    # CPU of a delivery process.
    direct_micros: float
    auction_micros: float
    contextual_micros: float
    event_micros: float
    # CPU of a worker. Charging is what an event costs more than counting.
    counting_micros: float
    charging_micros: float
    lease_micros: float
    # CPU of the servers.
    valkey_event_micros: float
    database_counting_micros: float
    database_charging_micros: float
    # CPU of a classifier.
    page_micros: float

    # On the network, heads included.
    request_in_bytes: float
    request_out_bytes: float
    event_in_bytes: float
    event_out_bytes: float
    # Of an event that is charged: in Valkey's memory, in PostgreSQL's files, in its write-ahead log.
    log_bytes: float
    row_bytes: float
    wal_bytes: float
    # Memory of a process, and what a campaign or page adds to it.
    delivery_bytes: float
    delivery_campaign_bytes: float
    delivery_page_bytes: float
    worker_bytes: float
    worker_campaign_bytes: float
    classifier_bytes: float
