"""Files that hold many: rows of Parquet files, members of tar files."""
