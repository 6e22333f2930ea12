"""Corpora: files, folders, URLs, dataset ids and corpus specs, read as documents."""
