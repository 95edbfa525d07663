"""Configuration of the made-up trainer."""

from __future__ import annotations

from advisor.runs import Launch


def render(launch: Launch, model: str | None) -> str:
    """Text of its TOML file."""
    settings = launch.settings
    return (
        f"model = {(model or 'MODEL')!r}\npace = {settings.learning_rate!r}\n"
        f"siblings = {settings.group_size}\nquestions = {launch.prompts}\nturns = {launch.steps}\n"
    )
