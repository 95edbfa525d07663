"""Refresh interval and prompts per optimizer step from the sizes of batches."""

from __future__ import annotations

from advisor.trainers.settings_extractor import Setting, SettingsExtractor, share


def set_batches(
    extractor: SettingsExtractor,
    rollout: Setting[int] | None,
    mini: Setting[int] | None,
    unit: str = "prompts",
) -> None:
    """Set mini-batches per refresh and prompts per step.

    Parameters
    ----------
    extractor : SettingsExtractor
        Its ``group_size`` is set where the batches count completions.
    rollout, mini : Setting or None
        Sizes of a batch of rollouts and of the share of it that an optimizer step uses.
    unit : {"prompts", "completions"}
        What both count.
    """
    if rollout is None or mini is None or rollout.value % mini.value:
        return
    count = rollout.value // mini.value
    extractor.put("minibatches_per_refresh", count, f"{rollout} / {mini} = {count}")
    size = 1 if unit == "prompts" else extractor.facts.get("group_size")
    if size is not None:
        prompts = share(mini.value, int(size))
        by = "" if unit == "prompts" else f" completions / group_size {size}"
        extractor.put("prompts_per_step", prompts, f"{mini}{by} = {prompts:g} prompts")
