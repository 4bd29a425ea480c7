"""When pages are read again by those who follow them."""

from adloom.pages.follow.page_table import AGAIN_SECONDS, COMMITTED_SECONDS, PageMark


def test_pages_are_read_after_each_change_until_all_of_it_is_committed_and_seldom_else() -> None:
    mark, reads = PageMark(), list[int]()
    for second in range(100):
        if mark.is_due(7 if second < 40 else 8, at=second):
            reads.append(second)
            mark.note_read(at=second)

    moved = range(40, 41 + int(COMMITTED_SECONDS))
    assert reads[: 1 + int(COMMITTED_SECONDS)] == list(range(1 + int(COMMITTED_SECONDS)))
    assert set(moved) <= set(reads)
    assert all(
        after - before <= AGAIN_SECONDS for before, after in zip(reads, [*reads[1:], 100], strict=True)
    )
    assert len(reads) < 30


def test_pages_that_could_not_be_read_stay_due() -> None:
    mark = PageMark()

    assert all(mark.is_due(7, at=at) for at in (0.0, COMMITTED_SECONDS, 3 * AGAIN_SECONDS))
