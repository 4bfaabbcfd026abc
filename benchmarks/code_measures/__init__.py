"""What code_size.py measures: files and functions, chains of imports, the functions that one clip passes."""
