"""One check a file: what is measured, and the findings that follow."""
