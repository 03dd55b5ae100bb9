"""Helpers that the test suites share; nothing in here is imported by the packages under test."""
