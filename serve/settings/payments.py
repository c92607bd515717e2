"""The rows about payments: their secret and tables, webhooks, and mail.

A field is a row of the table (`serve/settings/__init__.py` says how to add one).
"""
# ruff: noqa: RUF009  (`setting` makes a dataclass field, not a default that is computed once)

from dataclasses import dataclass
from pathlib import Path

from tollgate.serve.settings import choices
from tollgate.serve.settings.rows import hidden, setting
from tollgate.serve.settings.shipped_files import PAYMENTS_TABLES
from tollgate.serve.settings.values import (
    PORT_MAX,
    boolean,
    duration,
    mail_sender,
    text,
    whole_number,
)


@dataclass(frozen=True, slots=True)
class PaymentsSettings:
    """The processes of the payments service: their files, their number, the operator's port."""

    secret_file: str = setting(
        "PAYMENTS_SECRET_FILE",
        text,
        "",
        "file of the secret behind keys, the same on every node; empty: in TOLLGATE_DATA",
    )
    vault_key_file: str = setting(
        "PAYMENTS_VAULT_KEY_FILE",
        text,
        "",
        "file of the keys that seal cards, the same on every node; empty: in TOLLGATE_DATA",
    )
    config: str = setting(
        "PAYMENTS_CONFIG", text, "", "folder of currencies, rates and fees; empty: the shipped one"
    )

    is_on: bool = setting("PAYMENTS_ENABLED", boolean, "true", "serve the payments API")
    replicas: int = setting(
        "PAYMENTS_REPLICAS", whole_number(1, 64), "1", "processes that answer the payments API"
    )
    operator_key_file: str = setting(
        "PAYMENTS_OPERATOR_KEY_FILE",
        text,
        "",
        "file of the operator's key (`tollgate payments make-operator-key`); empty: no such calls",
    )
    operator_host: str = setting(
        "PAYMENTS_OPERATOR_HOST", text, "127.0.0.1", "address of the operator's calls"
    )
    operator_port: int = setting(
        "PAYMENTS_OPERATOR_PORT", whole_number(1, PORT_MAX), "8082", "port of the operator's calls"
    )
    trusts_forwarded: bool = setting(
        "PAYMENTS_TRUST_FORWARDED_FOR",
        boolean,
        "false",
        "a proxy in front says in X-Forwarded-For, last, where calls come from",
    )

    networks: str = setting(
        "PAYMENTS_NETWORKS", text, "", "file of the card networks of live merchants; empty: none"
    )
    approves_live: bool = setting(
        "PAYMENTS_APPROVE_LIVE",
        boolean,
        "false",
        "live merchants trade as soon as they are opened, without the operator's approval",
    )
    rates_age_max_s: float = setting(
        "PAYMENTS_RATES_AGE_MAX",
        duration("1h", "87600h"),
        "168h",
        "oldest exchange rates by which live merchants' payments are exchanged",
    )

    def secret_path(self, data: str) -> Path:
        """The file of the secret; `data` is the value of TOLLGATE_DATA."""
        return Path(self.secret_file) if self.secret_file else Path(data) / "payments" / "secret"

    def vault_path(self, data: str) -> Path:
        """The file of the vault's keys; `data` is the value of TOLLGATE_DATA."""
        own = self.vault_key_file
        return Path(own) if own else Path(data) / "payments" / "vault-keys"

    @property
    def rates_age_max_ms(self) -> int:
        """The same in milliseconds."""
        return int(self.rates_age_max_s * 1000)

    @property
    def tables(self) -> Path:
        """The folder of the reference data."""
        return Path(self.config) if self.config else PAYMENTS_TABLES


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """Calls to webhooks (docs/payments.md, part D)."""

    allows_http: bool = setting(
        "WEBHOOK_ALLOW_HTTP", boolean, "false", "webhooks may be without https"
    )
    allows_private: bool = setting(
        "WEBHOOK_ALLOW_PRIVATE", boolean, "false", "webhooks may be at private addresses"
    )
    allows_loopback: bool = setting(
        "WEBHOOK_ALLOW_LOOPBACK",
        boolean,
        "false",
        "for development: webhooks of test merchants may be on the loopback, while HOST is",
    )
    timeout_s: float = setting(
        "WEBHOOK_TIMEOUT", duration("100ms", "1m"), "10s", "longest wait for a webhook's answer"
    )
    calls_max: int = setting(
        "WEBHOOK_CALLS_MAX",
        whole_number(1, 1_024),
        "64",
        "webhooks called at the same time, test and live",
    )


@dataclass(frozen=True, slots=True)
class MailSettings:
    """The server that takes our mail. Without one, mail is kept in a folder of TOLLGATE_DATA."""

    host: str = setting("SMTP_HOST", text, "", "mail server; empty: mail is kept as files")
    port: int = setting("SMTP_PORT", whole_number(1, PORT_MAX), "587", "port of the mail server")
    user: str = setting("SMTP_USER", text, "", "user at the mail server")
    password: str = setting("SMTP_PASSWORD", text, "", "password of that user", show=hidden)
    tls: choices.SmtpTls = setting(
        "SMTP_TLS", choices.smtp_tls, "starttls", "when TLS begins, if at all"
    )
    ca: str = setting("SMTP_TLS_CACERT", text, "", "file of the mail server's CA")
    timeout_s: float = setting(
        "SMTP_TIMEOUT", duration("100ms", "5m"), "10s", "longest wait for the mail server"
    )
    is_on_for_test: bool = setting(
        "MAIL_TEST_MERCHANTS", boolean, "false", "mail for test merchants, which anybody can open"
    )
    sender: str = setting("MAIL_FROM", mail_sender, "", "sender of mail, `Name <address>`")
