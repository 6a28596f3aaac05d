"""Servers, clients and what is around them."""
