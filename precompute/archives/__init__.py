"""Archives of audio: rows of Parquet files, members of tar files."""
