"""Bytes to tables: files, archives and formats, without knowing what a key means."""
