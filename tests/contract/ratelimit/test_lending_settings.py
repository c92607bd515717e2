"""The settings of counting reach the terms that fronts and partitions lend by."""

from tollgate.actors.ratelimit.lending.terms import Terms
from tollgate.serve.ratelimit.engine import lending_terms
from tollgate.serve.settings import Settings


def test_the_settings_are_in_the_terms() -> None:
    assert lending_terms(Settings.from_environment({})) == Terms()
    asked = {
        "COUNTER_TERM": "20s",
        "COUNTERS_PER_PARTITION_MAX": "7",
        "COUNTERS_WHEN_FULL": "refuse",
    }
    terms = lending_terms(Settings.from_environment(asked))
    assert (terms.term_s, terms.counters_max, terms.refuses_when_full) == (20.0, 7, True)
