"""Agents at remote sites, which dial in over mutual TLS."""
