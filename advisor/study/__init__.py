"""Studies: the folder an answer leaves, and how two of them differ."""
