"""The `tollgate` command."""

from importlib import import_module
from typing import Any

import click

from serve.settings import SettingsError

# Name on the command line: module and object. Imported when asked for, because a command that only
# reads files should not wait for gRPC or Ray.
COMMANDS = {
    "up": ("serve.commands.up", "up"),
    "status": ("serve.commands.status", "status"),
    "down": ("serve.commands.down", "down"),
    "settings": ("serve.commands.settings", "settings"),
    "check-config": ("serve.commands.check_config", "check_config"),
    "explain": ("serve.commands.explain", "explain"),
    "client": ("serve.commands.client", "client"),
    "catalog": ("serve.commands.catalog", "catalog"),
    "payments": ("serve.commands.payments", "payments"),
    "ledger": ("serve.commands.ledger", "ledger"),
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
