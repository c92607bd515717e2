"""Settings: every environment variable of the service, typed and checked, in one place.

To add a variable, add one field to its group in `service.py` (the service itself), `ledger.py` and
`payments.py` (payments), or `catalog_auth.py`:

    deadline_s: float = setting("COUNTER_DEADLINE", duration("1ms", "1m"), "15ms", "its meaning")

The name is the canonical one, in neutral words; its product spelling follows by itself. The parser
comes from `values.py`, or `choices.py` for a closed set; the default is text that this parser
reads. What must hold between values goes to `checks.py`.
"""

from tollgate.serve.settings.environment import (
    Description,
    Settings,
    SettingsError,
    add_to_process_environment,
    describe,
    process_environment,
)

__all__ = [
    "Description",
    "Settings",
    "SettingsError",
    "add_to_process_environment",
    "describe",
    "process_environment",
]
