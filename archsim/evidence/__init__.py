"""Published measurements, and the conditions they were made under."""
