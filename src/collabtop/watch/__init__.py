"""A page in the browser that shows runs live and after they end: read-only, from their logs."""
