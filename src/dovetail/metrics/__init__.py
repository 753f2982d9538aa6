"""What happened in a run, in columns, and the figures made of it."""
