"""The site of the docs: its pages from the repository, the reference from the package, and what checks them."""
