"""Configuration of the made-up trainer."""

from __future__ import annotations

from advisor.runs.trainers.export import Launch


def render(launch: Launch, model: str | None) -> str:
    """Text of its TOML file."""
    return (
        f"model = {(model or 'MODEL')!r}\npace = {launch.learning_rate!r}\n"
        f"siblings = {launch.group_size}\nquestions = {launch.prompts}\nturns = {launch.steps}\n"
    )
