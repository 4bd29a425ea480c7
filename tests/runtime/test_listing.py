"""Conditions with bound values, and pages of rows."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adloom.runtime.listing import Filters, PageRequest, RowSource, fetch_page
from adloom.runtime.postgres import Pool

WORDS = RowSource(
    columns="it.word", tables="unnest($1::text[]) WITH ORDINALITY AS it (word, place)", tiebreak="it.place"
)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)


def filters_on(words: list[str]) -> Filters:
    filters = Filters()
    filters.bind(words)
    return filters


def test_conditions_are_joined_and_their_values_numbered() -> None:
    filters = Filters()

    filters.add("a = {}", 1)
    filters.add_given("b = {}", None)
    filters.add_given("b = {}", False)  # noqa: FBT003 - a value of a column
    filters.add_search(("c", "d"), "50%")

    assert filters.sql == "a = $1 AND b = $2 AND (c ILIKE $3 OR d ILIKE $3)"
    assert filters.values == [1, False, "%50\\%%"]


def test_a_query_without_conditions_selects_everything() -> None:
    assert Filters().sql == "true"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(texts, max_size=5), search=texts)
async def test_a_search_matches_the_text_literally(words: list[str], search: str, pool: Pool) -> None:
    filters = filters_on([*words, f"before {search} after"])
    filters.add_search(("it.word",), search)

    async with pool.acquire() as connection:
        found = await fetch_page(connection, WORDS, filters, PageRequest(sort="word", size=100))

    assert f"before {search} after" in [row["word"] for row in found.items]
    if set(search) <= set("%_\\"):
        assert all(search in row["word"] for row in found.items)


async def test_pages_do_not_overlap_even_when_all_rows_are_equal(pool: Pool) -> None:
    seen: list[int] = []
    source = RowSource(columns="it.place", tables=WORDS.tables, tiebreak="it.place")

    for number in (1, 2, 3):
        page = PageRequest(sort="word", number=number, size=2)
        async with pool.acquire() as connection:
            listed = await fetch_page(connection, source, filters_on(["same"] * 5), page)
        seen += [row["place"] for row in listed.items]
        assert listed.total_count == 5

    assert seen == [1, 2, 3, 4, 5]
