"""``mpiio-ext completion``: a script with which a shell completes the words of mpiio-ext.

click writes the function that the shell calls, and answers it by the variable _MPIIO_EXT_COMPLETE. Names of subcommands
are completed without importing the subcommands (`common.commands`), so that a key press costs only the start of Python.
"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from mpiio_ext.cli import bash
from mpiio_ext.common.commands import Command
from mpiio_ext.common.printing import echo

_PROGRAM = "mpiio-ext"
_VARIABLE = "_MPIIO_EXT_COMPLETE"


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script with which a shell completes the words of mpiio-ext: its commands, their options, hints and files.

    \b
      eval "$(mpiio-ext completion bash)"           # in ~/.bashrc; bash 4.4 or newer
      eval "$(mpiio-ext completion zsh)"            # in ~/.zshrc, behind compinit
      mpiio-ext completion fish | source            # in ~/.config/fish/config.fish

    As a file it needs no Python when a shell starts: ~/.local/share/bash-completion/completions/mpiio-ext, a file
    _mpiio-ext in a folder of zsh's fpath, ~/.config/fish/completions/mpiio-ext.fish.
    """  # noqa: D301  (click wants the backspace character itself)
    main = click.get_current_context().find_root().command
    bash.register()
    found = get_completion_class(shell)
    assert found is not None
    echo(found(main, {}, _PROGRAM, _VARIABLE).source_template % found(main, {}, _PROGRAM, _VARIABLE).source_vars())
