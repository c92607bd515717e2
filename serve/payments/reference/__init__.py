"""Tables that operators edit: countries, currencies, exchange rates, fees, error codes."""
