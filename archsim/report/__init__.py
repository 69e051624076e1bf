"""Results as text, HTML, SVG, JSON and CSV."""
