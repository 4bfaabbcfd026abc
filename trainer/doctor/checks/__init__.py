"""One check per file: what is measured, and the findings that follow."""
