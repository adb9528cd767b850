"""What a lake adds to the standard, as data: its own columns and tables, and the SQL of the questions."""
