"""Readers of tables without a tracker or trainer of their own: CSV, JSONL, JSON."""
