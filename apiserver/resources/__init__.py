"""What each served resource does, verb by verb."""
