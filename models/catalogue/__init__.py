"""The profiles of releases, and their reader."""
