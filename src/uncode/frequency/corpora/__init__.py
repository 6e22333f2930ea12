"""What is counted: files, folders, addresses, dataset ids and corpus specs, read as documents."""
