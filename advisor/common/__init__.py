"""What every room needs: saving, progress, seeds, safe text, extras that may be missing."""
