"""What an installation has to do, on which machines, within which bounds, at which prices, and what each thing costs."""

# pure

from datetime import datetime
from typing import Final

import msgspec

DAY_SECONDS: Final = 86_400
GIGABYTE: Final = 10**9


class TrafficDemand(msgspec.Struct, frozen=True, kw_only=True):
    """A day of traffic, and the catalog that serves it."""

    requests_per_day: float
    campaigns: float
    sites: float
    pages_per_site: float = 100
    auction_share: float = 0.3
    contextual_share: float = 0.2
    impressions_per_request: float = 0.8
    clicks_per_impression: float = 0.005
    paid_share: float = 1.0
    peak: float = 2.5  # The busiest minutes of a day to its mean.
    page_fresh_hours: float = 48
    event_retention_days: float = 90

    @property
    def requests_per_second(self) -> float:
        """Requests a second at the peak."""
        return self.requests_per_day / DAY_SECONDS * self.peak

    @property
    def events_per_request(self) -> float:
        return self.impressions_per_request * (1 + self.clicks_per_impression)

    @property
    def events_per_second(self) -> float:
        """Events a second at the peak."""
        return self.requests_per_second * self.events_per_request

    @property
    def pages(self) -> float:
        return self.sites * self.pages_per_site

    @property
    def pages_per_second(self) -> float:
        return self.pages / (self.page_fresh_hours * 3_600)


class MachineSizes(msgspec.Struct, frozen=True, kw_only=True):
    """What a machine has; PostgreSQL gets one of its own kind."""

    cores: int = 8
    memory_bytes: float = 32 * GIGABYTE
    network_bits: float = 10 * GIGABYTE
    database_cores: int = 32
    database_write_bytes: float = GIGABYTE / 2
    valkey_bytes: float = 64 * GIGABYTE


class PlanBounds(msgspec.Struct, frozen=True, kw_only=True):
    """How full a part may be at the peak, how long a request may wait for its turn, how many machines may fail."""

    utilisation: float = 0.6
    wait_seconds: float = 0.005
    page_wait_seconds: float = 60.0
    spare: int = 1


class Prices(msgspec.Struct, frozen=True, kw_only=True):
    """What things cost, in any currency."""

    core_hour: float = 0.0
    gb_egress: float = 0.0
    gb_month: float = 0.0


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
