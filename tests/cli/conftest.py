"""What tests of the command line have in common."""

from __future__ import annotations

import pytest

from advisor.cli import main


@pytest.fixture
def run(capsys):
    """The command line: exit code, standard output, standard error."""

    def call(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return stopped.value.code or 0, captured.out, captured.err

    return call
