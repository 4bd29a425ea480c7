"""A capacity plan as text: a few lines, and a table of the roles."""
# pure

from collections.abc import Sequence

from adloom.ops.capacity.demand import GIGABYTE, Coefficients, PlanBounds, Prices
from adloom.ops.capacity.plan import CapacityPlan, Limit, RoleNeed

MEGABIT = 10**6
MILLION = 10**6
BILLION = 10**9
SHARE_OF_A_HUNDRED = 0.01


def render_plan(plan: CapacityPlan, costs: Coefficients, bounds: PlanBounds, prices: Prices) -> str:
    """Render what an installation needs; the lines end without spaces."""
    lines = [
        f"{_shorten(plan.demand.requests_per_day)} requests a day: {_describe_machines(plan, bounds)}",
        "",
        *_render_table([_HEADINGS, *(_describe_role(need, plan) for need in plan.roles)]),
        "",
        *(f"{name + ':':<13}{text}" for name, text in _describe_load(plan)),
        "",
        *(f"{_describe_limit(limit, is_first=limit is plan.bottleneck)}" for limit in plan.limits),
        "",
        _describe_cost(plan, prices),
        f"measured {costs.measured_at:%Y-%m-%d} at commit {costs.commit} on {costs.processor}",
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


_HEADINGS = ("role", "processes", "machines", "busy", "memory", "wait p99")


def _describe_machines(plan: CapacityPlan, bounds: PlanBounds) -> str:
    spare = f", {bounds.spare} spare" if bounds.spare else ""
    if plan.is_one_machine:
        return f"one machine (`adloom up`){spare}"
    machines = f"{plan.machines:,} machines, {plan.cores:,} cores"
    if plan.installations > 1:
        return f"{plan.installations:,} installations, {machines}; of one of them:"
    return f"{machines}{spare and f'{spare} of each role'}"


def _describe_role(need: RoleNeed, plan: CapacityPlan) -> tuple[str, ...]:
    return (
        need.role,
        f"{need.processes:,}",
        "shared" if plan.is_one_machine else f"{need.machines:,}",
        _show_share(need.utilisation) if need.utilisation else "",
        f"{need.process_bytes / GIGABYTE:.1f} GB" if need.process_bytes else "",
        "" if need.wait_seconds is None else f"{need.wait_seconds * 1_000:.2g} ms",
    )


def _describe_load(plan: CapacityPlan) -> list[tuple[str, str]]:
    load = [
        (
            "at the peak",
            (
                f"{plan.requests_per_second:,.0f} requests, {plan.events_per_second:,.0f} events, "
                f"{plan.lease_reports_per_second:,.0f} lease reports a second"
            ),
        ),
        (
            "Valkey",
            f"{_show_share(plan.valkey_utilisation)} of a core; the event log goes {plan.log_hours:,.0f} hours back",
        ),
        (
            "PostgreSQL",
            (
                f"{plan.database_cores:.2f} cores, {plan.database_write_bytes_per_second / MILLION:,.1f} MB/s to its log, "
                f"{plan.database_bytes / GIGABYTE:,.0f} GB of events"
            ),
        ),
        (
            "network",
            f"{plan.in_bits_per_second / MEGABIT:,.1f} Mbit/s in, {plan.out_bits_per_second / MEGABIT:,.1f} out",
        ),
    ]
    if plan.site_groups > 1:
        load.append(
            (
                "sites",
                f"more pages than fit a process: route by host, to at least {plan.site_groups:,} groups",
            )
        )
    return load


def _describe_limit(limit: Limit, *, is_first: bool) -> str:
    begin = "bottleneck:  " if is_first else "             "
    return f"{begin}{limit.name}: {_show_share(limit.utilisation)}, full at {_shorten(limit.requests_per_day_max)} a day"


def _describe_cost(plan: CapacityPlan, prices: Prices) -> str:
    if not (prices.core_hour or prices.gb_egress or prices.gb_month):
        return "cost:        give --price-core-hour, --price-gb-egress and --price-gb-month"
    return f"cost:        {plan.cost_per_million:,.3g} a million requests"


def _render_table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _show_share(share: float) -> str:
    return "under 1 %" if share < SHARE_OF_A_HUNDRED else f"{share:.0%}".replace("%", " %")


def _shorten(number: float) -> str:
    if number >= BILLION:
        return f"{number / BILLION:,.3g} billion"
    if number >= MILLION:
        return f"{number / MILLION:,.3g} million"
    return f"{number:,.0f}"
