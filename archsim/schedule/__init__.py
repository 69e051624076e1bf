"""Schedules: when each kernel runs."""
