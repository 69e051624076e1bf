"""The corpus: measurements that others have published, as rows with their source."""
