"""Bytes to tables: files and formats, without knowing what a key means."""
