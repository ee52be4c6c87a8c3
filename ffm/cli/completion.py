"""`ffm completion`: code that makes a shell complete the commands and options of ffm."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the code with which a shell completes ffm's commands, options and files.

    \b
    bash: echo 'eval "$(ffm completion bash)"' >> ~/.bashrc
    zsh:  echo 'eval "$(ffm completion zsh)"' >> ~/.zshrc
    fish: ffm completion fish > ~/.config/fish/completions/ffm.fish
    """
    from ffm.cli.main import COMPLETION_VARIABLE, commands

    kind = get_completion_class(shell)
    assert kind is not None  # click knows all three
    click.echo(kind(commands, {}, "ffm", COMPLETION_VARIABLE).source())
