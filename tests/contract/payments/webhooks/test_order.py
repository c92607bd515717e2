"""The order of deliveries: what is overtaken, by what, and how soon all is well again."""

from pathlib import Path

from tests.support.payments.webhook_world import (
    NOW_S,
    Receivers,
    World,
    in_world,
)


def test_an_event_that_fails_for_less_than_a_minute_is_not_overtaken(tmp_path: Path) -> None:
    failures = iter(["HTTP status 500", "HTTP status 503"])

    def refuse(url: str, event: int) -> str | None:
        return next(failures, None) if event == 3 else None

    async def scenario(world: World) -> None:
        await world.hook(1)
        await world.events(2, 3, 4)
        for _ in range(4):
            await world.deliver()
            world.clock.advance(5)

    receivers = in_world(tmp_path, scenario, Receivers(refuse))
    assert receivers.got("https://a1.example") == [2, 3, 3, 3, 4]


def test_an_event_that_is_refused_for_ever_holds_up_the_others_for_a_minute(
    tmp_path: Path,
) -> None:
    async def scenario(world: World) -> None:
        await world.hook(1)
        await world.events(2, 3, 4)
        for _ in range(12):
            await world.deliver()
            assert set(world.receivers.got("https://a1.example")) == {2}
            world.clock.advance(5)
        await world.events(*range(5, 30))
        await world.deliver()

    receivers = in_world(
        tmp_path, scenario, Receivers(lambda _, event: "HTTP status 410" if event == 2 else None)
    )
    assert [event for event in receivers.got("https://a1.example") if event > 2] == [*range(3, 30)]


def test_events_of_a_kind_that_is_refused_hold_up_the_others_once(tmp_path: Path) -> None:
    """A receiver that cannot read one event in three."""

    async def scenario(world: World) -> None:
        await world.hook(1)
        await world.events(*range(2, 62))
        await world.deliver()
        world.clock.advance(60)
        await world.deliver()

    receivers = in_world(
        tmp_path, scenario, Receivers(lambda _, event: None if event % 3 else "HTTP status 500")
    )
    taken = [event for event in receivers.got("https://a1.example") if event % 3]
    assert taken == [event for event in range(2, 62) if event % 3]


def test_after_an_absence_all_comes_soon_and_in_order(tmp_path: Path) -> None:
    """The receiver is away for 75 s: ten seconds later it has everything."""

    async def scenario(world: World) -> None:
        world.receivers.refuse = lambda *_: (
            "no connection" if world.clock.now_s() < NOW_S + 75 else None
        )
        await world.hook(1)
        for number in range(2, 87):
            await world.events(number)
            await world.deliver()
            world.clock.advance(1)

    receivers = in_world(tmp_path, scenario)
    tried = receivers.got("https://a1.example")
    assert tried[-1] == 86
    delivered = tried[-85:]
    assert delivered == [*range(2, 87)], "in order, each once"


def test_slow_retries_do_not_keep_new_events_waiting(tmp_path: Path) -> None:
    """Every second event runs into the time-out."""

    async def scenario(world: World) -> None:
        def slow(url: str, event: int) -> str | None:
            if event % 2:
                return None
            world.clock.advance(10)
            return "no answer within 10 s"

        world.receivers.refuse = slow
        await world.hook(1)
        for number in range(2, 14, 2):
            await world.events(number, number + 1)
            world.clock.advance(60)
            await world.deliver()
        await world.deliver()

    seen = in_world(tmp_path, scenario).got("https://a1.example")
    assert [event for event in seen if event % 2] == [*range(3, 14, 2)]
    for number in range(4, 14, 2):
        assert seen.index(number + 1) - seen.index(number) <= 3, "soon after the one before it"


def test_twelve_that_are_refused_in_a_row_hold_up_the_others_for_a_minute(tmp_path: Path) -> None:
    """Whoever refuses is there, and may take the next one."""

    async def scenario(world: World) -> None:
        await world.hook(1)
        await world.events(*range(2, 30))
        for _ in range(13):
            await world.deliver()
            world.clock.advance(5)

    receivers = in_world(
        tmp_path, scenario, Receivers(lambda _, event: "HTTP status 410" if event < 14 else None)
    )
    assert receivers.got("https://a1.example")[-16:] == [*range(14, 30)]


def test_a_receiver_that_comes_back_and_refuses_what_it_missed_gets_the_rest(
    tmp_path: Path,
) -> None:
    async def scenario(world: World) -> None:
        def refuse(url: str, event: int) -> str | None:
            if world.clock.now_s() < NOW_S + 1_800:
                return "no connection"
            return "HTTP status 410" if event < 20 else None

        world.receivers.refuse = refuse
        await world.hook(1)
        await world.events(*range(2, 30))
        while world.clock.now_s() < NOW_S + 1_800 * 9 / 8:
            await world.deliver()
            is_away = world.clock.now_s() < NOW_S + 1_800
            world.clock.advance(30 if is_away else 5)

    seen = in_world(tmp_path, scenario).got("https://a1.example")
    assert [event for event in seen if event > 19] == [*range(20, 30)]
