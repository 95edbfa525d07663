"""Readers of experiment trackers: TensorBoard, W&B, notebooks."""
