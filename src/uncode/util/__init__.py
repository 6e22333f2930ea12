"""What several rooms use and no field needs: files, journals, TOML, downloads, extras, Ray, statistics."""
