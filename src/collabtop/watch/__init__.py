"""A page in the browser that shows runs as they go on, and after: read from their logs, and read only."""
