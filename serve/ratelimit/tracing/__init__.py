"""Spans of decided calls, on their way to a collector of OpenTelemetry; no calls, no decisions.

Only `otlp.py` and `span_writer.py` import OpenTelemetry, and nothing imports those two unless
tracing is on.
"""
