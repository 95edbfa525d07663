"""What figures share: colours, sizes, frames, ticks, and labels that keep clear of each other."""
