"""The log: text lines with time, level and msg, or JSON objects (docs/operations.md, Logs)."""

import json
import logging
from datetime import UTC, datetime

from tollgate.serve.settings import Settings
from tollgate.serve.settings.choices import LogFormat

LEVEL_NAMES = {logging.WARNING: "warning", logging.CRITICAL: "fatal"}


def configure_logs(settings: Settings) -> None:
    """Send this process's Tollgate log to standard error as the settings ask for."""
    handler = logging.StreamHandler()
    is_json = settings.log.format is LogFormat.JSON
    handler.setFormatter(JsonLines() if is_json else TextLines())
    log = logging.getLogger("tollgate")
    log.handlers = [handler]
    log.propagate = False
    log.setLevel(settings.log.level)


class TextLines(logging.Formatter):
    """`time="…" level=warning msg="…"`, and ` name="…"` for each field."""

    def format(self, record: logging.LogRecord) -> str:
        message = json.dumps(_message(self, record), ensure_ascii=False)
        told = "".join(
            f" {name}={json.dumps(value, ensure_ascii=False)}"
            for name, value in _fields(record).items()
        )
        return f'time="{_time(record)}" level={_level(record)} msg={message}{told}'


class JsonLines(logging.Formatter):
    """`{"@message": …, "@timestamp": …, "level": …}`, and a member for each field."""

    def format(self, record: logging.LogRecord) -> str:
        line = _fields(record) | {
            "@message": _message(self, record),
            "@timestamp": _time(record),
            "level": _level(record),
        }
        return json.dumps(line, ensure_ascii=False)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """What a line says beside its message: `extra={"fields": {…}}`."""
    fields: dict[str, object] = getattr(record, "fields", {})
    return fields


def _message(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    message = record.getMessage()
    if record.exc_info:
        message += "\n" + formatter.formatException(record.exc_info)
    return message


def _level(record: logging.LogRecord) -> str:
    return LEVEL_NAMES.get(record.levelno, record.levelname.lower())


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
