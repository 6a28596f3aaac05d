"""Servers, their clients, and fake external services."""
