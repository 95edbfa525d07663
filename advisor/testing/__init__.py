"""For tests of one's own: conformance of readers."""
