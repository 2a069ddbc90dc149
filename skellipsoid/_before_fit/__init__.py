"""Before a fit: ``text_files`` reads files of texts, ``data_check`` finds what is wrong with training data."""
