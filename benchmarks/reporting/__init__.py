"""What becomes of figures: JSON, tables, pictures, and the parts of README and docs that are made of them."""
