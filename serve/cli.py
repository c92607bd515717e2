"""The `tollgate` command."""

from importlib import import_module
from typing import Any

import click

from tollgate.serve.settings import SettingsError

# Name on the command line: module and object. Imported when asked for, because a command that only
# reads files should not wait for gRPC or Ray.
COMMANDS = {
    "up": ("tollgate.serve.commands.up", "up"),
    "status": ("tollgate.serve.commands.status", "status"),
    "down": ("tollgate.serve.commands.down", "down"),
    "settings": ("tollgate.serve.commands.settings", "settings"),
    "check-environment": (
        "tollgate.serve.commands.environment.command",
        "check_environment",
    ),
    "check-config": ("tollgate.serve.commands.check_config", "check_config"),
    "explain": ("tollgate.serve.commands.explain", "explain"),
    "counters": ("tollgate.serve.commands.counters", "counters"),
    "client": ("tollgate.serve.commands.client", "client"),
    "catalog": ("tollgate.serve.commands.catalog.command", "catalog"),
    "payments": ("tollgate.serve.commands.payments.command", "payments"),
    "ledger": ("tollgate.serve.commands.ledger.command", "ledger"),
}


class Commands(click.Group):
    """A group that imports a command when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name]
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command), f"{module}.{name} is a command"
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SettingsError as error:
            for line in error.errors:
                click.echo(f"tollgate: {line}", err=True)
            ctx.exit(1)


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tollgate")
def main() -> None:
    """Tollgate: payments, rate limits and catalog authentication on Ray."""


if __name__ == "__main__":
    main()
