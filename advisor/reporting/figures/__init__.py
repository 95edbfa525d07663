"""The figures, one per file; the face of the room lists them."""
