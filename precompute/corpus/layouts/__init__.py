"""The layouts of corpora, one file for each family; `precompute/corpus/listing.py` chooses among them."""
