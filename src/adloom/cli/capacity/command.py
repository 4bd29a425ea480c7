"""`adloom capacity`."""

# ruff: noqa: PLC0415 - as in main.py, a command imports what it needs when it runs

from pathlib import Path
from typing import Annotated

import typer

from adloom.ops.capacity.demand import MachineSizes, PlanBounds, Prices, TrafficDemand

LARGE = 1e15
GIGA = 10**9
MEGA = 10**6


def _make_share_option(text: str) -> typer.models.OptionInfo:
    return typer.Option(min=0, max=1, help=text)


def _make_number_option(text: str, least: float = 0, most: float = LARGE) -> typer.models.OptionInfo:
    return typer.Option(min=least, max=most, help=text)


def capacity(  # noqa: PLR0913 - one for each option
    *,
    requests_per_day: Annotated[float, _make_number_option("Requests for ads a day.", 1)] = 1e6,
    campaigns: Annotated[float, _make_number_option("Active campaigns.")] = 1_000,
    sites: Annotated[float, _make_number_option("Sites with contextual slots.")] = 100,
    pages_per_site: Annotated[
        float, _make_number_option("Their pages, each classified every 48 hours.")
    ] = 100,
    auction_share: Annotated[float, _make_share_option("Requests that are auctions.")] = 0.3,
    contextual_share: Annotated[float, _make_share_option("Requests for contextual slots.")] = 0.2,
    impressions_per_request: Annotated[
        float, _make_number_option("Impressions that a request brings.", 0, 100)
    ] = 0.8,
    paid_share: Annotated[float, _make_share_option("Events that are charged to a budget.")] = 1.0,
    peak: Annotated[float, _make_number_option("The busiest minutes of a day to its mean.", 1, 100)] = 2.5,
    cores: Annotated[int, typer.Option(min=1, max=1024, help="Cores of a machine.")] = 8,
    memory_gb: Annotated[float, _make_number_option("Memory of a machine.", 1)] = 32,
    database_cores: Annotated[int, typer.Option(min=1, max=1024, help="Cores of PostgreSQL's.")] = 32,
    database_write_mb: Annotated[float, _make_number_option("What its disk writes a second.", 1)] = 500,
    valkey_gb: Annotated[float, _make_number_option("`maxmemory` of Valkey.", 0.1)] = 64,
    utilisation: Annotated[
        float, _make_number_option("How busy a process may be at the peak.", 0.05, 0.95)
    ] = 0.6,
    wait_ms: Annotated[float, _make_number_option("How long 1 % of requests may wait at least.", 0.01)] = 5.0,
    spare: Annotated[int, typer.Option(min=0, max=10, help="Machines of each role that may fail.")] = 1,
    price_core_hour: Annotated[float, _make_number_option("Price of a core for an hour.")] = 0.0,
    price_gb_egress: Annotated[float, _make_number_option("Price of a GB sent to visitors.")] = 0.0,
    price_gb_month: Annotated[float, _make_number_option("Price of a GB stored for a month.")] = 0.0,
    coefficients: Annotated[
        Path | None, typer.Option(help="What `adloom bench capacity` wrote, here or on another machine.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compute machines by role, the load of the servers, the first bottleneck and the cost of a traffic."""
    if auction_share + contextual_share > 1:
        raise typer.BadParameter("--auction-share and --contextual-share are more than 1 together.")
    demand = TrafficDemand(
        requests_per_day=requests_per_day,
        campaigns=campaigns,
        sites=sites,
        pages_per_site=pages_per_site,
        auction_share=auction_share,
        contextual_share=contextual_share,
        impressions_per_request=impressions_per_request,
        paid_share=paid_share,
        peak=peak,
    )
    sizes = MachineSizes(
        cores=cores,
        memory_bytes=memory_gb * GIGA,
        database_cores=database_cores,
        database_write_bytes=database_write_mb * MEGA,
        valkey_bytes=valkey_gb * GIGA,
    )
    bounds = PlanBounds(utilisation=utilisation, wait_seconds=wait_ms / 1_000, spare=spare)
    prices = Prices(core_hour=price_core_hour, gb_egress=price_gb_egress, gb_month=price_gb_month)
    _print_plan(demand, sizes, bounds, prices, coefficients, is_json=as_json)


def _print_plan(  # noqa: PLR0913 - all that a plan needs
    demand: TrafficDemand,
    sizes: MachineSizes,
    bounds: PlanBounds,
    prices: Prices,
    coefficients: Path | None,
    *,
    is_json: bool,
) -> None:
    import msgspec

    from adloom.cli.capacity.report import render_plan
    from adloom.ops.capacity.coefficients_file import read_coefficients
    from adloom.ops.capacity.plan import plan_capacity

    costs = read_coefficients(coefficients)
    plan = plan_capacity(demand, costs, sizes, bounds, prices)
    if is_json:
        typer.echo(msgspec.json.format(msgspec.json.encode({"plan": plan, "coefficients": costs}), indent=2))
    else:
        typer.echo(render_plan(plan, costs, bounds, prices), nl=False)
