"""The layouts of corpora, one module for each family; `precompute/corpus/listing.py` chooses among them."""
