"""The command line: one file per command."""

from advisor.cli.app import main as main
