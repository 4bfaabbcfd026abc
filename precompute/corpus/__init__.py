"""Reading corpora: one module for each family of layouts, and how a clip becomes a record."""
