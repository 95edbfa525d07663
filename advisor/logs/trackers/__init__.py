"""Readers of experiment trackers: TensorBoard, W&B, Trackio, notebooks."""
