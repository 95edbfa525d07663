"""One figure per file, each with an info object and a function that draws it."""
