"""Pages of a partition's counters: what they look at, and that nothing which stays is left out."""

from collections import Counter

from tollgate.actors.ratelimit.lending.messages import CounterName
from tollgate.actors.ratelimit.lending.partition.listing import (
    LOOKED_AT_MAX,
    NamesPage,
    Place,
    page_of,
)
from tollgate.actors.ratelimit.lending.partition.slot_table import Names

END_S = 1_000


class Slots:
    """Windows by slot, and how often a slot was asked for."""

    def __init__(self, windows: dict[int, Names]) -> None:
        self.windows = windows
        self.asked: Counter[int] = Counter()

    def names_of(self, slot: int) -> Names:
        self.asked[slot] += 1
        return self.windows.get(slot, [])

    def pages(self) -> list[NamesPage]:
        pages = [page_of(self.names_of, None)]
        while (after := pages[-1].after) is not None:
            pages.append(page_of(self.names_of, after))
        return pages


def names_in(pages: list[NamesPage]) -> list[CounterName]:
    return [name for page in pages for name in page.names]


def keys(what: bytes, size: int) -> set[bytes]:
    return {b"%s %d" % (what, number) for number in range(size)}


def test_small_slots_share_a_page() -> None:
    slots = Slots({slot: [(END_S, keys(b"of %d" % slot, 10))] for slot in range(0, 256, 2)})
    pages = slots.pages()
    assert [len(page.names) for page in pages] == [1_020, 260]
    assert len(set(names_in(pages))) == 1_280


def test_a_large_slot_has_pages_of_its_own() -> None:
    large = keys(b"large", 20_000)
    slots = Slots({2: [(END_S, {b"a"})], 3: [(END_S, large), (2 * END_S, large)], 255: []})
    pages = slots.pages()
    assert len(pages) == 1 + 40 + 1
    # (hashes are spread by chance, which is off by a fifth once in a million times)
    assert max(len(page.names) for page in pages) < 1.3 * LOOKED_AT_MAX
    assert Counter(names_in(pages)) == Counter(
        [(END_S, b"a"), *((end_s, key) for end_s in (END_S, 2 * END_S) for key in large)]
    )


def test_the_last_slot_may_be_a_large_one() -> None:
    large = keys(b"large", 5_000)
    pages = Slots({255: [(END_S, large)]}).pages()
    assert {key for _, key in names_in(pages)} == large


def test_what_stays_is_shown_once_whatever_comes_and_goes() -> None:
    staying, going = keys(b"staying", 5_000), sorted(keys(b"going", 5_000))
    shown: list[CounterName] = []
    there: set[bytes] = staying | set(going)
    slots = Slots({7: [(END_S, there)]})
    page = page_of(slots.names_of, None)
    while page.after is not None:
        shown += page.names
        going, gone = going[600:], going[:600]
        there.difference_update(gone)
        there.update(keys(b"come after %d" % len(shown), 300))
        page = page_of(slots.names_of, page.after)
    shown += page.names
    assert Counter(key for _, key in shown if key in staying) == Counter(staying)
    assert max(Counter(shown).values()) == 1


def test_another_process_begins_the_slot_again() -> None:
    large = keys(b"large", 5_000)
    slots = Slots({0: [(END_S, {b"a"})], 3: [(END_S, large)]})
    elsewhere = Place(3, 60_000, 12_345)
    pages = [page_of(slots.names_of, elsewhere)]
    while (after := pages[-1].after) is not None:
        pages.append(page_of(slots.names_of, after))
    assert {key for _, key in names_in(pages)} == large
