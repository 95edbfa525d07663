"""Readers of experiment trackers: TensorBoard, W&B, MLflow, Trackio, notebooks."""
